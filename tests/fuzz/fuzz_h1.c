/*
 * HTTP/1 sessions: the output does not depend on how the input is divided, nor on the room for output, and it begins
 * well-formed. The first two bytes of the input select piece size and room; the rest is the client's bytes.
 */
#include "fuzz.h"

#include "http/h1_parse.h"
#include "table_server.h"

static const struct table_row rows[] = {
    {.path = "/hello", .status = 200, .body = "hello"},
    {.path = "/none", .status = 204},
    {.path = "/close", .status = 200, .body = "x", .close_after = true},
    {.path = "/echo", .behavior = TABLE_ECHO},
    {.path = "/small", .behavior = TABLE_ECHO, .body_limit = 5},
    {.path = "/hints", .status = 200, .body = "x", .inform = "Link: </a>"},
    {.path = NULL, .status = 404, .body = "?"},
};

static void open_server(struct table_server *server)
{
    table_server_open(server, &protocol_http1, rows);
    server->settings.header_buffer_size = 100;
    server->settings.large_header_size = 200;
    server->settings.head_max = 500;
    server->settings.max_headers = 8;
    server->settings.body_buffer_size = 24;
    server->settings.keepalive_requests = 4;
}

static void check_split(struct str sent, size_t piece, size_t room)
{
    struct table_server whole;
    struct table_server split;

    open_server(&whole);
    open_server(&split);
    split.room = room;
    table_server_feed(&whole, sent, 0);
    table_server_feed(&split, sent, piece);
    HOLDS(str_equal(buffer_str(&whole.out), buffer_str(&split.out)));
    HOLDS(str_equal(buffer_str(&whole.log), buffer_str(&split.log)));
    HOLDS(whole.result == split.result);
    HOLDS(whole.unread.length == split.unread.length);
    HOLDS(whole.out.length == 0 || str_starts(buffer_str(&whole.out), STR("HTTP/1.1 ")));
    table_server_close(&whole);
    table_server_close(&split);
}

static void check_head(struct str head)
{
    static const struct session_settings settings = {.header_buffer_size = 4096,
                                                     .large_header_size = 4096,
                                                     .head_max = 8192,
                                                     .max_headers = 50,
                                                     .merge_slashes = true};
    struct h1_scan scan = {0};
    struct request request = {0};
    struct arena arena;
    bool keepalive;
    int end = h1_head_end(&scan, &settings, head);

    if (end <= 0)
        return;
    arena_init(&arena, NULL, 0);
    head = str_slice(head, scan.start, (size_t)end);
    if (h1_parse_head(head, &settings, &arena, &request, &keepalive) == 0) {
        HOLDS(request.path.length > 0);
        HOLDS(request.path.data[0] == '/' || str_equal(request.path, STR("*")));
        HOLDS(str_search(request.path, STR("/../")) < 0);
        HOLDS(request.method != METHOD_CONNECT);
        HOLDS(request.version == HTTP_1_0 || request.host.length > 0);
        for (unsigned i = 0; i < request.headers.count; i++) {
            HOLDS(h1_is_token(request.headers.items[i].name));
            HOLDS(h1_is_value(request.headers.items[i].value));
        }
    }
    arena_reset(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str sent;

    if (size < 2 || size > 4096)
        return 0;
    sent = str_of((const char *)bytes + 2, size - 2);
    check_split(sent, 1u + bytes[0] % 64, bytes[1] ? bytes[1] : 1);
    check_head(sent);
    return 0;
}
