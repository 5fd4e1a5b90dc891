/*
 * WebSockets of HTTP/2 clients (RFC 8441) on HTTP/1.1 servers: this server is the client of the opening handshake
 * (RFC 6455 4.1), so it generates the key and checks the response.
 */
#include "proxy.h"

#include "http/connection_options.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#define KEY_BYTES 16
#define BASE64_LENGTH(bytes) (((bytes) + 2) / 3 * 4)

/* The Sec-WebSocket-Accept of a key (RFC 6455 4.2.2). data NULL: out of memory. */
static struct str accept_of(struct arena *arena, struct str key)
{
    struct str text = arena_join(arena, (const struct str[]){key, STR("258EAFA5-E914-47DA-95CA-C5AB0DC85B11")}, 2);
    char *accept = arena_alloc(arena, BASE64_LENGTH(EVP_MAX_MD_SIZE) + 1);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length;

    if (!text.data || !accept || EVP_Digest(text.data, text.length, digest, &length, EVP_sha1(), NULL) != 1)
        return (struct str){NULL, 0};
    return str_of(accept, (size_t)EVP_EncodeBlock((unsigned char *)accept, digest, (int)length));
}

int proxy_websocket_begin(struct gateway_request *p, struct headers *fields)
{
    struct arena *arena = &p->x->arena;
    char *key = arena_alloc(arena, BASE64_LENGTH(KEY_BYTES) + 1);
    unsigned char bytes[KEY_BYTES];
    struct str text;

    if (!key || RAND_bytes(bytes, sizeof bytes) != 1)
        return -ENOMEM;
    text = str_of(key, (size_t)EVP_EncodeBlock((unsigned char *)key, bytes, sizeof bytes));
    p->websocket_accept = accept_of(arena, text);
    if (!p->websocket_accept.data)
        return -ENOMEM;
    return headers_set(fields, arena, STR("Sec-WebSocket-Key"), text);
}

const char *proxy_websocket_check(struct gateway_request *p)
{
    struct headers *fields = &p->reply.headers;
    struct str accept = headers_value(fields, STR("Sec-WebSocket-Accept"));
    struct connection_options options;

    if (str_empty(p->websocket_accept))
        return NULL;
    if (connection_options_read(fields, &options) < 0 || !options.upgrade ||
        !str_equal_nocase(headers_value(fields, STR("Upgrade")), STR("websocket")))
        return "101 without an upgrade to websocket";
    if (!str_equal(accept, p->websocket_accept))
        return "a wrong Sec-WebSocket-Accept";
    headers_remove(fields, STR("Sec-WebSocket-Accept"));
    return NULL;
}
