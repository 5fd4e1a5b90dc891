/*
 * The PROXY protocol header at the start of a connection, which may arrive in pieces. Bytes after it in the same
 * receive belong to the connection.
 */
#include "wire/wire_queue.h"

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

ssize_t wire_proxy_header_collect(struct wire *wire, struct str bytes, struct proxy_header *out)
{
    struct wire_proxy_header *collected = wire->proxy_header;
    size_t before = collected->length;
    struct str taken = str_slice(bytes, 0, size_sub_sat(sizeof(collected->bytes), before));
    ssize_t length;

    memcpy(collected->bytes + before, taken.data, taken.length);
    collected->length += taken.length;
    length = proxy_header_parse(str_of(collected->bytes, collected->length), out);
    if (length == 0) /* the buffer cannot be full: such a header is malformed */
        return -EAGAIN;
    if (length < 0)
        return -EBADMSG;
    free(collected);
    wire->proxy_header = NULL;
    return (ssize_t)size_sub_sat((size_t)length, before);
}

void wire_local_address(const struct wire *wire, union proxy_address *out)
{
    struct sockaddr_storage own;
    socklen_t length = sizeof(own);

    *out = (union proxy_address){.any.sa_family = AF_UNSPEC};
    if (getsockname(wire->fd, (struct sockaddr *)&own, &length) == 0 && length <= sizeof(*out))
        memcpy(out, &own, length);
}
