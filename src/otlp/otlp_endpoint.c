/*
 * Parses the URL of a collector. The characters of the host are restricted, because they are sent in Host.
 */
#include "otlp/otlp.h"

#include "base/limits.h"

#include <errno.h>

static bool is_path(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~' || text.data[i] == '#')
            return false;
    }
    return true;
}

static bool is_host(struct str text, bool brackets)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = str_lower(text.data[i]);

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '_' &&
            !(brackets && c == ':'))
            return false;
    }
    return text.length > 0;
}

/* Splits "name", "name:port", "[address]" or "[address]:port". *out_port is empty if there is none. */
static bool split_authority(struct str text, struct str *out_host, struct str *out_port)
{
    bool brackets = str_starts(text, STR("["));
    struct str rest = brackets ? str_skip(text, 1) : text;
    uint64_t number;

    *out_host = str_cut(&rest, brackets ? ']' : ':');
    if (brackets && (!rest.data || (rest.length > 0 && rest.data[0] != ':')))
        return false;
    if (brackets)
        rest = rest.length > 0 ? str_skip(rest, 1) : (struct str){NULL, 0};
    *out_port = str_or_empty(rest);
    if (rest.data && (str_to_u64(rest, &number) < 0 || number == 0 || number > 65535))
        return false;
    return is_host(*out_host, brackets);
}

int otlp_endpoint_parse(struct str text, struct otlp_endpoint *out_endpoint)
{
    struct otlp_endpoint endpoint = {.url = text};
    struct str rest = text;
    ssize_t slash;

    endpoint.tls = str_starts(text, STR("https://"));
    if (endpoint.tls)
        rest = str_skip(text, 8);
    else if (str_starts(text, STR("http://")))
        rest = str_skip(text, 7);
    slash = str_find(rest, '/');
    endpoint.authority = slash < 0 ? rest : str_slice(rest, 0, (size_t)slash);
    endpoint.path = slash < 0 ? STR("") : str_skip(rest, (size_t)slash);
    if (text.length > LIMIT_OTLP_URL || !split_authority(endpoint.authority, &endpoint.host, &endpoint.port) ||
        !is_path(endpoint.path) || (endpoint.tls && endpoint.host.length > LIMIT_SERVER_NAME))
        return -EINVAL;
    if (endpoint.path.length <= 1)
        endpoint.path = STR("/v1/traces");
    if (str_empty(endpoint.port))
        endpoint.port = endpoint.tls ? STR("443") : STR("4318");
    *out_endpoint = endpoint;
    return 0;
}
