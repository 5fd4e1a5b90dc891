/*
 * The URL to explain, and the listening address for it.
 */
#include "explain/explain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

/* "host", "host:80", "[::1]:80". */
static bool authority_parse(struct str text, struct explain_url *url)
{
    ssize_t bracket = str_find(text, ']');
    ssize_t colon = str_rfind(text, ':');
    uint64_t port = 0;
    bool named = colon > bracket;

    url->authority = text;
    url->host = named ? str_slice(text, 0, (size_t)colon) : text;
    if (named && (str_to_u64(str_skip(text, (size_t)colon + 1), &port) < 0 || port == 0 || port > 65535))
        return false;
    url->port = (unsigned)port;
    if (str_starts(url->host, STR("[")))
        url->host = str_slice(url->host, 1, url->host.length - 1);
    return url->host.length > 0;
}

int explain_url_parse(struct str text, struct explain_url *out_url, char *out_error, size_t size)
{
    struct str rest = text;
    struct explain_url url = {.target = str_cut(&rest, '#')}; /* the fragment is not sent */
    size_t end = 0;

    text = url.target;
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.data[i] <= ' ' || text.data[i] == 127) {
            snprintf(out_error, size, "a URL must not contain blanks or control characters: write %%20 for a blank");
            return -EINVAL;
        }
    }
    if (str_starts(text, STR("/"))) {
        *out_url = url;
        return 0;
    }
    url.https = str_starts(text, STR("https://"));
    if (!url.https && !str_starts(text, STR("http://"))) {
        snprintf(out_error, size, "\"" STR_FMT "\" is not a URL: it must begin with http://, https:// or a slash",
                 STR_ARG(text));
        return -EINVAL;
    }
    rest = str_skip(text, url.https ? 8 : 7);
    while (end < rest.length && !strchr("/?", rest.data[end]))
        end++;
    if (!authority_parse(str_slice(rest, 0, end), &url)) {
        snprintf(out_error, size, "\"" STR_FMT "\" is not a host with a port",
                 STR_ARG(str_slice(rest, 0, end)));
        return -EINVAL;
    }
    url.port = url.port ? url.port : url.https ? 443 : 80;
    url.target = str_skip(rest, end);
    *out_url = url;
    return 0;
}

/*
 * Whether the address accepts connections to `host`: 2: it is this address; 1: it is a wildcard, or `host` is a name,
 * which may have any address; 0: no.
 */
static int address_rank(const struct endpoint *endpoint, struct str host)
{
    const struct sockaddr_storage *name = &endpoint->address.socket;
    char text[64] = "", own[INET6_ADDRSTRLEN] = "";
    bool any;

    if (host.length < sizeof(text))
        memcpy(text, host.data, host.length);
    if (name->ss_family == AF_INET) {
        const struct in_addr *v4 = &((const struct sockaddr_in *)name)->sin_addr;

        inet_ntop(AF_INET, v4, own, sizeof(own));
        any = v4->s_addr == htonl(INADDR_ANY);
    } else if (name->ss_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)name)->sin6_addr;

        inet_ntop(AF_INET6, v6, own, sizeof(own));
        any = IN6_IS_ADDR_UNSPECIFIED(v6);
    } else {
        return 0;
    }
    if (strcmp(own, text) == 0)
        return 2;
    return any || inet_pton(AF_INET, text, own) + inet_pton(AF_INET6, text, own) <= 0;
}

/* Lists all listening addresses of http, for the error text. */
static void addresses_list(const struct configuration *configuration, char *into, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < configuration->endpoint_count && used < size; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];
        int more = endpoint->servers[0]->stream
                       ? 0
                       : snprintf(into + used, size - used, "%s" STR_FMT "%s", used ? ", " : "",
                                  STR_ARG(endpoint->text), endpoint->ssl ? " (https)" : "");

        used += more > 0 ? (size_t)more : 0;
    }
}

const struct endpoint *explain_endpoint(const struct configuration *configuration,
                                        const struct explain_url *url, char *out_error, size_t size)
{
    const struct endpoint *best = NULL;
    char listening[160] = "";
    int rank = 0;

    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];
        int found = url->port == 0                                         ? 1
                    : listen_address_port(&endpoint->address) == url->port ? address_rank(endpoint, url->host)
                                                                           : 0;

        if (endpoint->servers[0]->stream || found <= rank)
            continue;
        best = endpoint;
        rank = found;
    }
    addresses_list(configuration, listening, sizeof(listening));
    if (!best)
        snprintf(out_error, size, "no server listens on port %u of " STR_FMT "; the addresses are %s", url->port,
                 STR_ARG(url->host), listening);
    else if (url->port && best->ssl != url->https)
        snprintf(out_error, size, STR_FMT " is for %s; the addresses are %s", STR_ARG(best->text),
                 best->ssl ? "https" : "http", listening);
    else
        return best;
    return NULL;
}
