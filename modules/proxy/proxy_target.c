/*
 * Parses the address of proxy_pass.
 */
#include "proxy.h"

#include <errno.h>

/* "unix:/path" or "unix:/path:/uri" */
static int parse_unix(struct str rest, struct gateway_target *out_target)
{
    ssize_t colon = str_find(str_skip(rest, 5), ':');

    if (!str_starts(str_skip(rest, 5), STR("/")))
        return -EINVAL;
    *out_target = (struct gateway_target){.authority = rest};
    if (colon < 0)
        return 0;
    out_target->authority = str_slice(rest, 0, (size_t)colon + 5);
    if ((size_t)colon + 6 == rest.length)
        return 0;
    out_target->uri = str_skip(rest, (size_t)colon + 6);
    return out_target->uri.data[0] == '/' ? 0 : -EINVAL;
}

int proxy_target_parse(struct str text, struct gateway_target *out_target)
{
    struct str rest = text;
    size_t end = 0;
    bool https = str_starts(text, STR("https://"));

    if (https || str_starts(text, STR("http://")))
        rest = str_skip(text, https ? 8 : 7);
    else if (!str_starts(text, STR("unix:")))
        return -EINVAL;
    if (str_starts(rest, STR("unix:")))
        return https ? -EINVAL : parse_unix(rest, out_target);
    while (end < rest.length && rest.data[end] != '/' && rest.data[end] != '?')
        end++;
    if (end == 0)
        return -EINVAL;
    *out_target = (struct gateway_target){.https = https, .authority = str_slice(rest, 0, end)};
    if (end < rest.length)
        out_target->uri = str_skip(rest, end);
    return out_target->uri.data && out_target->uri.data[0] != '/' ? -EINVAL : 0;
}

uint16_t proxy_target_port(const struct gateway_target *target)
{
    return target->https ? 443 : 80;
}
