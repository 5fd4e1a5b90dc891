/*
 * The client's address behind proxies: the first line of the input is the field that a client sent, each further line a
 * field that a proxy appended. Nothing that the client sent changes an address that the proxies decide; an address that
 * is found is found again where it is printed; an element of Forwarded (RFC 7239) and a member of X-Forwarded-For with
 * the same address mean the same; and two field lines mean the same as one.
 */
#include "fuzz.h"

#include "http/h1_parse.h"
#include "modules/realip/forwarded.h"

#include <arpa/inet.h>
#include <string.h>

static const char *const names[] = {"X-Forwarded-For", "Forwarded"};

static struct str name_of(bool is_forwarded)
{
    return str_from(names[is_forwarded]);
}

static struct forwarded_trust trust_of(bool recursive)
{
    static struct cidr proxies[2];

    HOLDS(cidr_parse(STR("10.0.0.0/8"), &proxies[0]) == 0 && cidr_parse(STR("2001:db8::/32"), &proxies[1]) == 0);
    return (struct forwarded_trust){proxies, 2, recursive};
}

/* Finds the client in one field; false: none. */
static bool find_in(struct str value, bool is_forwarded, bool recursive, union proxy_address *out)
{
    struct forwarded_trust trust = trust_of(recursive);
    struct header field = {name_of(is_forwarded), value};
    struct headers headers = {&field, 1, 1};

    memset(out, 0, sizeof(*out));
    return forwarded_find_client(&trust, &headers, name_of(is_forwarded), out);
}

static bool same_address(const union proxy_address *a, const union proxy_address *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static void check_printed(const union proxy_address *address)
{
    bool is_ip6 = address->any.sa_family == AF_INET6;
    char host[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 16];
    union proxy_address again;
    int length;

    HOLDS(is_ip6 || address->any.sa_family == AF_INET);
    HOLDS(is_ip6 ? inet_ntop(AF_INET6, &address->ip6.sin6_addr, host, sizeof(host))
                 : inet_ntop(AF_INET, &address->ip4.sin_addr, host, sizeof(host)));
    length = snprintf(text, sizeof(text), is_ip6 ? "[%s]:%u" : "%s:%u", host,
                      ntohs(is_ip6 ? address->ip6.sin6_port : address->ip4.sin_port));
    HOLDS(find_in(str_of(text, (size_t)length), false, false, &again));
    HOLDS(same_address(address, &again));
}

/* Cuts a token off the front. False: there is none. */
static bool read_token(struct str *rest, struct str *out)
{
    size_t length = 0;

    while (length < rest->length && h1_is_token(str_slice(*rest, length, length + 1)))
        length++;
    *out = str_slice(*rest, 0, length);
    *rest = str_skip(*rest, length);
    return length > 0;
}

/* Cuts a byte off the front. False: there is another one. */
static bool read_byte(struct str *rest, char byte)
{
    bool is_there = rest->length > 0 && rest->data[0] == byte;

    *rest = str_skip(*rest, is_there);
    return is_there;
}

/* Cuts a token or a quoted-string without backslashes off the front. */
static bool read_value(struct str *rest, struct str *out)
{
    ssize_t end;

    if (!read_byte(rest, '"'))
        return read_token(rest, out);
    end = str_find(*rest, '"');
    if (end < 0)
        return false;
    *out = str_slice(*rest, 0, (size_t)end);
    *rest = str_skip(*rest, (size_t)end + 1);
    return str_find(*out, '\\') < 0;
}

/* A second parser: true for an element of the grammar of RFC 7239 4, with the first value of `for`. */
static bool read_element(struct str rest, struct str *out_for)
{
    struct str name, value;

    *out_for = (struct str){NULL, 0};
    do {
        if (!read_token(&rest, &name) || !read_byte(&rest, '=') || !read_value(&rest, &value))
            return false;
        if (!out_for->data && str_equal_nocase(name, STR("for")))
            *out_for = value;
    } while (read_byte(&rest, ';'));
    return str_empty(rest);
}

static void check_element(struct str element)
{
    union proxy_address by_element, by_member;
    struct str value;
    bool found;

    if (!read_element(element, &value))
        return;
    found = find_in(element, true, true, &by_element);
    if (!value.data || str_find(value, ',') >= 0 || str_trim(value).length < value.length) {
        HOLDS(!found);
        return;
    }
    HOLDS(found == find_in(value, false, true, &by_member));
    HOLDS(!found || same_address(&by_element, &by_member));
}

/* The fields of the proxies decide if they contain an address that is not that of a proxy. */
static void check_fields(const struct headers *all, struct arena *arena, bool is_forwarded, bool recursive)
{
    struct forwarded_trust trust = trust_of(recursive);
    struct headers appended = {all->items + 1, all->count - 1, all->count - 1};
    union proxy_address client = {0}, other = {0};
    struct str joined;

    if (forwarded_find_client(&trust, &appended, name_of(is_forwarded), &client)) {
        check_printed(&client);
        HOLDS(forwarded_find_client(&trust, all, name_of(is_forwarded), &other));
        HOLDS((recursive && forwarded_is_trusted(&trust, &client.any)) || same_address(&client, &other));
    }
    HOLDS(headers_join(all, str_equal_nocase, name_of(is_forwarded), STR(", "), arena, &joined) == 0);
    if (is_forwarded && str_find(joined, '"') >= 0)
        return;
    memset(&client, 0, sizeof(client));
    HOLDS(find_in(joined, is_forwarded, recursive, &other) ==
          forwarded_find_client(&trust, all, name_of(is_forwarded), &client));
    HOLDS(same_address(&client, &other));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str rest = str_of((const char *)bytes, size);
    struct headers fields = {0};
    struct arena arena;

    if (size > 4000)
        return 0;
    arena_init(&arena, NULL, 0);
    while (rest.data) {
        struct str line = str_trim(str_cut(&rest, '\n'));

        check_element(line);
        HOLDS(headers_add(&fields, &arena, STR("X-Forwarded-For"), line) == 0);
    }
    for (unsigned kind = 0; kind < 4; kind++) {
        for (unsigned i = 0; i < fields.count; i++)
            fields.items[i].name = name_of(kind & 1);
        check_fields(&fields, &arena, kind & 1, kind & 2);
    }
    arena_reset(&arena);
    return 0;
}
