/*
 * Addresses: where a server listens, and who may. nginx takes the first rule that holds an address, sluice the most
 * exact one; these are the same once the rules that nginx never comes to are gone.
 */
#include "import/import_scope.h"

#include "base/cidr.h"

#include <arpa/inet.h>

struct str word_range(struct import *import, struct str word)
{
    char address[INET6_ADDRSTRLEN];
    unsigned char bytes[16] = {0};
    struct str bits = word;
    struct str front = str_cut(&bits, '/');
    int family = str_find(front, ':') < 0 ? AF_INET : AF_INET6;
    unsigned size = family == AF_INET ? 32 : 128;
    uint64_t count;

    if (!bits.data || front.length >= sizeof(address) || str_to_u64(bits, &count) < 0 || count > size)
        return word;
    memcpy(address, front.data, front.length);
    address[front.length] = '\0';
    if (inet_pton(family, address, bytes) != 1)
        return word;
    for (unsigned bit = (unsigned)count; bit < size; bit++)
        bytes[bit / 8] &= (unsigned char)~(0x80u >> bit % 8);
    if (!inet_ntop(family, bytes, address, sizeof(address)))
        return word;
    return words_print(import, "%s/%u", address, (unsigned)count);
}

/* What a rule of nginx's holds for. False: for nothing that is known here. */
static bool range_of(struct import *import, const struct nginx_directive *rule, struct cidr *out_range,
                     bool *out_all)
{
    *out_range = (struct cidr){.family = AF_UNSPEC};
    *out_all = rule->count == 1 && str_equal(rule->words[0], STR("all"));
    return rule->count == 1 && (*out_all || cidr_parse(word_range(import, rule->words[0]), out_range) == 0);
}

/* All addresses of `inner` are in `outer`. */
static bool covers(const struct cidr *outer, const struct cidr *inner)
{
    if (outer->family != inner->family || outer->bits > inner->bits)
        return false;
    for (unsigned bit = 0; bit < outer->bits; bit++) {
        if ((outer->bytes[bit / 8] ^ inner->bytes[bit / 8]) & (0x80u >> bit % 8))
            return false;
    }
    return true;
}

static bool is_rule(const struct nginx_directive *directive)
{
    return str_equal(directive->name, STR("allow")) || str_equal(directive->name, STR("deny"));
}

/* A rule before this one that holds for everything that this one does; NULL: none. */
static const struct nginx_directive *hidden_by(struct import *import, const struct scope *scope,
                                               const struct nginx_directive *rule)
{
    struct cidr own, other;
    bool own_all, all;

    if (!range_of(import, rule, &own, &own_all))
        return NULL;
    for (const struct nginx_directive *before = scope->block->first; before != rule; before = before->next) {
        if (is_rule(before) && range_of(import, before, &other, &all) &&
            (all || (!own_all && covers(&other, &own))))
            return before;
    }
    return NULL;
}

void carry_access(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                  const struct rule *rule)
{
    const struct nginx_directive *before = hidden_by(import, scope, directive);

    if (before)
        note(import, IMPORT_NEEDLESS, directive, "line %u holds for all of it", before->place.line);
    else if (directive->count != 1)
        leave_out(import, scope->map, directive, "it takes one address");
    else
        put_item(import, scope->map, str_equal(directive->name, STR("allow")) ? "allow" : "deny",
                 word_range(import, directive->words[0]), directive);
}

/* "*:80" is 80, an address without a port has 80, and localhost is an address. */
static struct str listen_address(struct import *import, struct str word)
{
    struct str port = word;
    struct str host = str_cut(&port, ':');
    uint64_t number;

    if (str_starts(word, STR("unix:")) || str_to_u64(word, &number) == 0)
        return word;
    if (str_starts(word, STR("[")))
        return str_search(word, STR("]:")) < 0 ? words_print(import, STR_FMT ":80", STR_ARG(word)) : word;
    if (str_equal(host, STR("localhost")))
        host = STR("127.0.0.1");
    if (str_equal(host, STR("*")))
        return port.data ? port : STR("80");
    return words_print(import, STR_FMT ":" STR_FMT, STR_ARG(host), STR_ARG(port.data ? port : STR("80")));
}

/* What becomes of a word of listen: NULL: it goes as it is; "": it always is so; else the note. */
static const char *listen_word(struct str word)
{
    static const struct {
        const char *word, *why;
    } words[] = {
        {"reuseport", ""},
        {"bind", ""},
        {"deferred", ""},
        {"ipv6only=on", ""},
        {"so_keepalive", "the kernel's defaults hold"},
        {"ipv6only=off", "an IPv6 address takes IPv6 alone: listen on the port by itself, too"},
        {"http2", "HTTP/2 is not spoken there: browsers use HTTP/1.1"},
        {"quic", "HTTP/3 is not spoken"},
        {"rcvbuf=", "the kernel sizes its buffers"},
        {"sndbuf=", "the kernel sizes its buffers"},
        {"fastopen=", "the kernel's defaults hold"},
        {"setfib=", "it means something on FreeBSD alone"},
        {"accept_filter=", "it means something on FreeBSD alone"},
        {"udp", "datagrams are not passed on"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct str known = str_from(words[i].word);

        if (str_equal(word, known) || (str_ends(known, STR("=")) && str_starts(word, known)) ||
            (str_equal(known, STR("so_keepalive")) && str_starts(word, known)))
            return words[i].why;
    }
    return NULL;
}

static bool is_whole(struct str word)
{
    return str_equal(word, STR("quic")) || str_equal(word, STR("udp"));
}

static bool has_ssl(const struct scope *scope)
{
    const struct nginx_directive *ssl = nginx_tree_find(scope->block, STR("ssl"));

    return ssl && ssl->count == 1 && str_equal(ssl->words[0], STR("on"));
}

void carry_listen(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                  const struct rule *rule)
{
    bool ssl = has_ssl(scope);
    struct str text;

    if (directive->count == 0) {
        leave_out(import, scope->map, directive, "it takes an address");
        return;
    }
    text = listen_address(import, directive->words[0]);
    for (size_t i = 1; i < directive->count; i++) {
        struct str word = directive->words[i];
        const char *why = listen_word(word);

        if (why && is_whole(word)) {
            leave_out(import, scope->map, directive, "%s", why);
            return;
        }
        if (why && *why)
            note(import, IMPORT_CHANGED, directive, STR_FMT ": %s", STR_ARG(word), why);
        ssl &= !str_equal(word, STR("ssl"));
        if (str_equal(word, STR("default")))
            word = STR("default_server");
        if (!why)
            text = words_print(import, STR_FMT " " STR_FMT, STR_ARG(text), STR_ARG(word));
    }
    if (ssl)
        text = words_print(import, STR_FMT " ssl", STR_ARG(text));
    put_item(import, scope->map, "listen", text, directive);
}
