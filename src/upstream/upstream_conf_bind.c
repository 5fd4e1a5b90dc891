/*
 * Reads the local address of connections to upstream servers.
 */
#include "upstream/upstream_bind.h"

#include <arpa/inet.h>
#include <errno.h>

int upstream_read_bind(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    union proxy_address address = {0};
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0 || str_equal(text, STR("off")) || str_equal(text, STR("false")))
        return error;
    if (inet_pton(AF_INET, text.data, &address.ip4.sin_addr) == 1)
        address.ip4.sin_family = AF_INET;
    else if (inet_pton(AF_INET6, text.data, &address.ip6.sin6_addr) == 1)
        address.ip6.sin6_family = AF_INET6;
    if (address.any.sa_family != AF_UNSPEC && strlen(text.data) == text.length) {
        *(union proxy_address *)out = address;
        return 0;
    }
    conf_error(reader->errors, node->mark, STR("127.0.0.1, \"::1\" or off"),
               "\"" STR_FMT "\" is not a local address", STR_ARG(text));
    return -EINVAL;
}
