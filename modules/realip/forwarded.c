/*
 * Lists are split from the end on, because proxies append to what the client sent: a quotation mark of the client must
 * not hide their members.
 */
#include "forwarded.h"

#include "base/limits.h"

#include <arpa/inet.h>

bool forwarded_is_trusted(const struct forwarded_trust *trust, const struct sockaddr *address)
{
    for (size_t i = 0; i < trust->count; i++) {
        if (cidr_contains(&trust->proxies[i], address))
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
        struct str value = str_trim(header_cut(&element, ';'));
        struct str name = str_cut(&value, '=');

        if (!value.data || !str_equal_nocase(name, STR("for")))
            continue;
        if (value.length >= 2 && value.data[0] == '"' && value.data[value.length - 1] == '"')
            value = str_slice(value, 1, value.length - 1);
        return value;
    }
    return STR("");
}

/* True if an odd number of backslashes precedes the byte at this index. */
static bool is_escaped(struct str text, size_t at)
{
    size_t start = at;

    while (start > 0 && text.data[start - 1] == '\\')
        start--;
    return (at - start) % 2;
}

/* Cuts the last member of a list at its comma; data NULL at the end. */
static struct str cut_last(struct str *rest, bool has_quotes)
{
    struct str whole = *rest;
    bool quoted = false;

    for (size_t i = whole.length; i > 0; i--) {
        char byte = whole.data[i - 1];

        if (byte == '"' && has_quotes && !is_escaped(whole, i - 1))
            quoted = !quoted;
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

bool forwarded_find_client(const struct forwarded_trust *trust, const struct headers *headers, struct str name,
                           union proxy_address *out_client)
{
    bool is_forwarded = str_equal_nocase(name, STR("Forwarded"));
    struct str rest = {NULL, 0};
    unsigned at = headers->count;
    bool found = false;

    for (size_t examined = 0; examined < LIMIT_FORWARDED; examined++) {
        struct str member;

        if (!rest.data) {
            if (!previous_field(headers, name, &at))
                break;
            rest = headers->items[at].value;
        }
        member = cut_last(&rest, is_forwarded);
        if (str_empty(member))
            continue;
        if (!parse_address(is_forwarded ? forwarded_for(member) : member, out_client))
            break;
        found = true;
        if (!trust->recursive || !forwarded_is_trusted(trust, &out_client->any))
            break;
    }
    return found;
}
