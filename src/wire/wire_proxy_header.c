/*
 * The PROXY protocol header at the start of a connection, which may arrive in pieces. Bytes after it in the same
 * receive belong to the connection.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>

struct wire_proxy_header {
    size_t length;
    char bytes[PROXY_HEADER_MAX];
};

int wire_await_proxy_header(struct wire *wire)
{
    wire->proxy_header = malloc(sizeof(*wire->proxy_header));
    if (!wire->proxy_header)
        return -ENOMEM;
    wire->proxy_header->length = 0;
    return 0;
}

/* The header is complete: TLS begins, or the wire is open. */
static void proxy_header_received(struct wire *wire, const struct proxy_header *header, struct str rest)
{
    free(wire->proxy_header);
    wire->proxy_header = NULL;
    wire->events->proxy_header(wire, header);
    if (wire->state != WIRE_HANDSHAKE)
        return;
    if (wire->tls) {
        wire_deliver(wire, STR(""), rest);
        return;
    }
    wire->state = WIRE_OPEN;
    wire->receiving = false;
    wire->delivering = true;
    wire->events->opened(wire);
    wire->delivering = false;
    wire_push(wire);
    if (wire->state != WIRE_OPEN)
        return;
    if (wire->receiving)
        wire_deliver(wire, rest, STR(""));
    else if (!str_empty(rest) && !wire_keep_unread(wire, rest, STR("")))
        wire_fail(wire, WIRE_CLOSE_ABORT);
}

void wire_receive_proxy_header(struct wire *wire, struct str lent)
{
    struct wire_proxy_header *proxy_header = wire->proxy_header;
    size_t before = proxy_header->length;
    struct str taken = str_slice(lent, 0, size_sub_sat(sizeof(proxy_header->bytes), before));
    struct proxy_header header;
    ssize_t length;

    memcpy(proxy_header->bytes + before, taken.data, taken.length);
    proxy_header->length += taken.length;
    length = proxy_header_parse(str_of(proxy_header->bytes, proxy_header->length), &header);
    if (length == 0) { /* the buffer cannot be full: such a header is malformed */
        wire_receive_start(wire);
    } else if (length < 0) {
        wire_log(wire, LOG_INFO, "a bad header of the PROXY protocol, or none", 0);
        wire_fail(wire, WIRE_CLOSE_PROTOCOL);
    } else {
        proxy_header_received(wire, &header, str_skip(lent, size_sub_sat((size_t)length, before)));
    }
}

void wire_local_address(const struct wire *wire, union proxy_address *out)
{
    struct sockaddr_storage own;
    socklen_t length = sizeof(own);

    *out = (union proxy_address){.any.sa_family = AF_UNSPEC};
    if (getsockname(wire->fd, (struct sockaddr *)&own, &length) == 0 && length <= sizeof(*out))
        memcpy(out, &own, length);
}
