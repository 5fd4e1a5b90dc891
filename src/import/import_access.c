/*
 * Access rules by address. nginx applies the first matching rule, sluice the most specific one. Both have the same
 * result when the rules that nginx never applies are omitted.
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

/* The range of a rule. False: unknown. */
static bool range_of(struct import *import, const struct nginx_directive *rule, struct cidr *out_range,
                     bool *out_all)
{
    *out_range = (struct cidr){.family = AF_UNSPEC};
    *out_all = rule->count == 1 && str_equal(rule->words[0], STR("all"));
    return rule->count == 1 && (*out_all || cidr_parse(word_range(import, rule->words[0]), out_range) == 0);
}

/* True if all addresses of `inner` are in `outer`. */
static bool range_covers(const struct cidr *outer, const struct cidr *inner)
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

/* An earlier rule that covers this one; NULL: none. */
static const struct nginx_directive *covering_rule(struct import *import, const struct scope *scope,
                                                   const struct nginx_directive *rule)
{
    struct cidr own, other;
    bool own_all, all;

    if (!range_of(import, rule, &own, &own_all))
        return NULL;
    for (const struct nginx_directive *before = scope->block->first; before != rule; before = before->next) {
        if (is_rule(before) && range_of(import, before, &other, &all) &&
            (all || (!own_all && range_covers(&other, &own))))
            return before;
    }
    return NULL;
}

void translate_access(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                      const struct rule *rule)
{
    const struct nginx_directive *before = covering_rule(import, scope, directive);

    if (before)
        import_add_note(import, IMPORT_UNNEEDED, directive, "the rule in line %u already covers this range",
                        before->place.line);
    else if (directive->count != 1)
        import_omit(import, scope->map, directive, "it takes one address");
    else
        import_put_item(import, scope->map, str_equal(directive->name, STR("allow")) ? "allow" : "deny",
                        word_range(import, directive->words[0]), directive);
}
