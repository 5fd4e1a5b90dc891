/*
 * The client's address behind a trusted proxy (`set_real_ip_from`), from a request header field or from the PROXY
 * protocol header. Runs first, so that all other modules use the client's address.
 */
#include "base/cidr.h"
#include "base/limits.h"
#include "server/module.h"
#include "stream/stream_module.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>

struct realip_conf {
    struct conf_rows from; /* struct cidr */
    struct str header;
    bool recursive;
};

static int read_from(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    return conf_read_cidr(reader, node, out);
}

static const struct directive directives[] = {
    {.name = "set_real_ip_from",
     .scopes = SCOPE_SITE | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_REPEAT,
     .offset = offsetof(struct realip_conf, from),
     .row_size = sizeof(struct cidr),
     .row = read_from,
     .syntax = "address | address/bits | unix:",
     .example = "set_real_ip_from: [10.0.0.0/8, \"2001:db8::/32\", \"unix:\"]",
     .help = "Proxies whose information about the client is trusted (real_ip_header). Their X-Forwarded-For and "
             "related fields are passed on by proxy_pass, with their own address appended. In stream the "
             "information is in the PROXY protocol header."},
    {.name = "real_ip_header",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEXT,
     .offset = offsetof(struct realip_conf, header),
     .default_value = "X-Real-IP",
     .example = "real_ip_header: X-Forwarded-For",
     .help = "The source of the client's address from trusted proxies: a header field (X-Real-IP, X-Forwarded-For, "
             "Forwarded or another), or proxy_protocol."},
    {.name = "real_ip_recursive",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = offsetof(struct realip_conf, recursive),
     .default_value = "off",
     .example = "real_ip_recursive: on",
     .help = "Use the last address of a list that is not trusted, instead of the last one."},
    {0},
};

static bool is_trusted(const struct realip_conf *conf, const struct sockaddr *address)
{
    const struct cidr *from = conf->from.items;

    for (size_t i = 0; i < conf->from.count; i++) {
        if (cidr_contains(&from[i], address))
            return true;
    }
    return false;
}

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80". */
static bool split_address_port(struct str text, struct str *out_address, struct str *out_port)
{
    ssize_t colon = str_rfind(text, ':');
    ssize_t close = str_find(text, ']');

    *out_address = text;
    *out_port = (struct str){NULL, 0};
    if (str_starts(text, STR("["))) {
        struct str rest = str_skip(text, (size_t)(close + 1));

        if (close < 0 || (rest.length && rest.data[0] != ':'))
            return false;
        *out_address = str_slice(text, 1, (size_t)close);
        if (rest.length)
            *out_port = str_skip(rest, 1);
        return str_find(*out_address, ':') >= 0;
    }
    if (colon >= 0 && str_find(text, ':') == colon) {
        *out_address = str_slice(text, 0, (size_t)colon);
        *out_port = str_skip(text, (size_t)colon + 1);
    }
    return true;
}

static bool parse_address(struct str text, union proxy_address *out_address)
{
    char terminated[INET6_ADDRSTRLEN];
    union proxy_address made = {0};
    struct str address, port;
    uint64_t number = 0;

    if (!split_address_port(text, &address, &port) || str_empty(address) || address.length >= sizeof(terminated) ||
        (port.data && (str_to_u64(port, &number) < 0 || number > 65535)))
        return false;
    memcpy(terminated, address.data, address.length);
    terminated[address.length] = '\0';
    if (strlen(terminated) != address.length)
        return false;
    if (inet_pton(AF_INET, terminated, &made.ip4.sin_addr) == 1) {
        made.ip4.sin_family = AF_INET;
        made.ip4.sin_port = htons((uint16_t)number);
    } else if (inet_pton(AF_INET6, terminated, &made.ip6.sin6_addr) == 1) {
        made.ip6.sin6_family = AF_INET6;
        made.ip6.sin6_port = htons((uint16_t)number);
    } else {
        return false;
    }
    *out_address = made;
    return true;
}

/* The value of `for` in an element of Forwarded (RFC 7239 4); empty if absent. */
static struct str forwarded_for(struct str element)
{
    while (element.data) {
        struct str value = str_trim(str_cut(&element, ';'));
        struct str name = str_cut(&value, '=');

        if (!value.data || !str_equal_nocase(name, STR("for")))
            continue;
        if (value.length >= 2 && value.data[0] == '"' && value.data[value.length - 1] == '"')
            value = str_slice(value, 1, value.length - 1);
        return value;
    }
    return STR("");
}

/*
 * Cuts the last member of a list at its comma; data NULL at the end. Not from the first one on: a quotation mark that
 * the client sent must not hide the members that proxies appended.
 */
static struct str cut_last(struct str *rest, bool has_quotes)
{
    struct str whole = *rest;
    bool quoted = false;

    for (size_t i = whole.length; i > 0; i--) {
        char byte = whole.data[i - 1];

        if (byte == '"')
            quoted = has_quotes && !quoted;
        if (byte != ',' || quoted)
            continue;
        *rest = str_slice(whole, 0, i - 1);
        return str_trim(str_skip(whole, i));
    }
    *rest = (struct str){NULL, 0};
    return str_trim(whole);
}

/* Finds the last field with this name before the index `*at`. */
static bool previous_field(const struct headers *headers, struct str name, unsigned *at)
{
    while (*at > 0) {
        if (str_equal_nocase(headers->items[--*at].name, name))
            return true;
    }
    return false;
}

/*
 * Searches from the last address to the first: each proxy appends the address of its peer, so the first untrusted
 * one is the client. An invalid address ends the search. False: no address was found.
 */
static bool find_client(const struct realip_conf *conf, const struct headers *headers,
                        union proxy_address *out_client)
{
    bool is_forwarded = str_equal_nocase(conf->header, STR("Forwarded"));
    struct str rest = {NULL, 0};
    unsigned at = headers->count;
    bool found = false;

    for (size_t examined = 0; examined < LIMIT_FORWARDED; examined++) {
        struct str member;

        if (!rest.data) {
            if (!previous_field(headers, conf->header, &at))
                break;
            rest = headers->items[at].value;
        }
        member = cut_last(&rest, is_forwarded);
        if (str_empty(member))
            continue;
        if (!parse_address(is_forwarded ? forwarded_for(member) : member, out_client))
            break;
        found = true;
        if (!conf->recursive || !is_trusted(conf, &out_client->any))
            break;
    }
    return found;
}

static enum outcome realip_handler(struct exchange *x, const void *conf, void *state)
{
    const struct realip_conf *own = conf;
    const struct sockaddr *peer = exchange_peer(x);
    const struct proxy_header *proxy_header = exchange_proxy_header(x);
    union proxy_address client = {0};

    if (exchange_is_internally_redirected(x) || !is_trusted(own, peer))
        return OUTCOME_DECLINED;
    if (str_equal(
            own->header,
            STR("proxy_protocol"))) { /* it authenticates the connection, not its requests */
        if (proxy_header && proxy_header->source.any.sa_family != AF_UNSPEC)
            exchange_set_client(x, &proxy_header->source, false);
        return OUTCOME_DECLINED;
    }
    if (!find_client(own, &x->request.headers, &client))
        client = *(const union proxy_address *)(const void *)peer;
    exchange_set_client(x, &client, true);
    return OUTCOME_DECLINED;
}

static int realip_connected(struct stream *stream, const void *conf, void *state)
{
    const struct realip_conf *own = conf;
    const struct proxy_header *proxy_header = stream_proxy_header(stream);

    if (proxy_header && proxy_header->source.any.sa_family != AF_UNSPEC && is_trusted(own, stream_peer(stream)))
        stream_set_client(stream, &proxy_header->source);
    return 0;
}

static const struct stream_part stream_part = {.connected = realip_connected};

static bool realip_idle(const void *conf)
{
    const struct realip_conf *own = conf;

    return own->from.count == 0;
}

const struct module module_realip = {
    .name = "realip",
    .directives = directives,
    .conf_size = sizeof(struct realip_conf),
    .idle = realip_idle,
    .server_rule = SERVER_RULE_PREPARES,
    .handler = realip_handler,
    .stream = &stream_part,
};
