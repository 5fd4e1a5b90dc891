/* The responses of the table server in the tests of sessions, and their bytes on the wire. */
#ifndef TEST_HTTP_SESSION_ROWS_H
#define TEST_HTTP_SESSION_ROWS_H

#include "table_server.h"

#define DATED                "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define HELLO                "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\n\r\nhello"
#define BYE                  "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 3\r\n\r\nbye"
#define ECHOED(length, text) "HTTP/1.1 200 OK\r\n" DATED "Content-Length: " length "\r\n\r\n" text
#define REFUSED(status)                                                                                      \
    "HTTP/1.1 " status "\r\n" DATED "Content-Length: 7\r\nConnection: close\r\n\r\nrefused"

#define EVIL "X: a\r\nSet-Cookie: b"

static const struct table_row rows[] = {
    {.path = "/hello", .status = 200, .body = "hello"},
    {.path = "/bye", .status = 200, .body = "bye"},
    {.path = "/type", .status = 200, .header = "Content-Type: text/plain", .body = "x"},
    {.path = "/own", .status = 200, .header = "Date: mine", .body = "x"},
    {.path = "/framing", .status = 200, .header = "content-LENGTH: 99", .body = "x"},
    {.path = "/evil", .status = 200, .header = EVIL, .body = "evil"},
    {.path = "/evilname", .status = 200, .header = "X Y: a", .body = "evil"},
    {.path = "/nostatus", .status = 42, .body = "evil"},
    {.path = "/none", .status = 204},
    {.path = "/same", .status = 304, .header = "ETag: \"a\"", .body = "never sent"},
    {.path = "/nothing", .status = 200},
    {.path = "/chunked", .status = 200, .body = "hello", .unknown_length = true},
    {.path = "/trailers", .status = 200, .body = "hi", .unknown_length = true, .trailer = "Digest: x"},
    {.path = "/later", .status = 200, .body = "later", .behavior = TABLE_LATER},
    {.path = "/close", .status = 200, .body = "x", .close_after = true},
    {.path = "/echo", .behavior = TABLE_ECHO},
    {.path = "/small", .behavior = TABLE_ECHO, .body_limit = 5},
    {.path = "/stream", .status = 200, .behavior = TABLE_STREAM},
    {.path = "/broken", .status = 200, .body = "part", .behavior = TABLE_BROKEN},
    {.path = "/short", .status = 200, .body = "part", .behavior = TABLE_BROKEN, .declared_length = 5},
    {.path = "/long", .status = 200, .body = "part", .behavior = TABLE_BROKEN, .declared_length = 3},
    {.path = "/hints", .status = 200, .body = "x", .inform = "Link: </a>"},
    {.path = NULL, .status = 404, .body = "?"},
};

#endif
