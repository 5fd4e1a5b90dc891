/*
 * Directives are in two tables, one of flags and one of seconds: the side that may send each, and the rules for
 * contradictory and invalid seconds.
 */
#include "http/cache_control.h"

#include "base/limits.h"
#include "base/text_writer.h"
#include "http/h1_parse.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

enum { BY_REQUEST = 1 << CACHE_OF_REQUEST, BY_RESPONSE = 1 << CACHE_OF_RESPONSE, BY_BOTH = BY_REQUEST | BY_RESPONSE };

#define AT(field) offsetof(struct cache_control, field)

static const struct flag_directive {
    const char *name;
    unsigned sides;
    size_t flag;                    /* offset of the bool */
} flag_directives[] = {
    {"no-store", BY_BOTH, AT(no_store)},
    {"no-cache", BY_BOTH, AT(no_cache)},
    {"no-transform", BY_BOTH, AT(no_transform)},
    {"only-if-cached", BY_REQUEST, AT(only_if_cached)},
    {"public", BY_RESPONSE, AT(is_public)},
    {"private", BY_RESPONSE, AT(is_private)},
    {"must-revalidate", BY_RESPONSE, AT(must_revalidate)},
    {"proxy-revalidate", BY_RESPONSE, AT(proxy_revalidate)},
    {"must-understand", BY_RESPONSE, AT(must_understand)},
};

static const struct delta_directive {
    const char *name;
    unsigned sides;
    size_t seconds;                 /* offset of the int64_t */
    int64_t bad;                    /* replaces an invalid value, and a missing one unless `bare` */
    bool bare;                      /* a missing value means DELTA_MAX */
    bool longer;                    /* of two values the longer one is the more restrictive */
    bool is_age;                    /* two different values are invalid */
} delta_directives[] = {
    {"max-age", BY_BOTH, AT(max_age), 0, false, false, true},
    {"s-maxage", BY_RESPONSE, AT(s_maxage), 0, false, false, true},
    {"max-stale", BY_REQUEST, AT(max_stale), 0, true, false, false},
    {"min-fresh", BY_REQUEST, AT(min_fresh), DELTA_MAX, false, true, false},
    {"stale-while-revalidate", BY_RESPONSE, AT(stale_while_revalidate), 0, false, false, false},
    {"stale-if-error", BY_BOTH, AT(stale_if_error), 0, false, false, false},
};

int delta_seconds_parse(struct str text, int64_t *out_seconds)
{
    uint64_t value;
    int error;

    if (text.length >= 2 && text.data[0] == '"' && text.data[text.length - 1] == '"')
        text = str_slice(text, 1, text.length - 1);
    error = str_to_u64(text, &value);
    if (error == -ERANGE || (error == 0 && value > DELTA_MAX)) {
        *out_seconds = DELTA_MAX;
        return 0;
    }
    if (error == 0)
        *out_seconds = (int64_t)value;
    return error;
}

static void *field_at(struct cache_control *control, size_t offset)
{
    return (char *)control + offset;
}

/* Keeps the more restrictive of two values; two different ages become 0 (4.2.1). */
static void parse_seconds(struct cache_control *control, const struct delta_directive *directive, struct str value,
                          bool has_value)
{
    int64_t *seconds = field_at(control, directive->seconds);
    int64_t found = directive->bad;

    if (!has_value && directive->bare)
        found = DELTA_MAX;
    else if (has_value && delta_seconds_parse(value, &found) < 0)
        found = directive->bad;
    if (*seconds == DELTA_NONE)
        *seconds = found;
    else if (directive->is_age && found != *seconds)
        *seconds = 0;
    else if (directive->longer ? found > *seconds : found < *seconds)
        *seconds = found;
}

void cache_control_add(struct cache_control *control, enum cache_side side, struct str name, struct str value,
                        bool has_value)
{
    unsigned bit = 1u << side;

    for (size_t i = 0; i < sizeof(flag_directives) / sizeof(flag_directives[0]); i++) {
        if ((flag_directives[i].sides & bit) && str_equal_nocase(name, str_from(flag_directives[i].name)))
            *(bool *)field_at(control, flag_directives[i].flag) = true;
    }
    for (size_t i = 0; i < sizeof(delta_directives) / sizeof(delta_directives[0]); i++) {
        if ((delta_directives[i].sides & bit) && str_equal_nocase(name, str_from(delta_directives[i].name)))
            parse_seconds(control, &delta_directives[i], has_value ? value : STR(""), has_value);
    }
}

static void add_directive(struct cache_control *control, enum cache_side side, struct str member)
{
    bool has_value = str_find(member, '=') >= 0;
    struct str value = member;
    struct str name = str_trim(str_cut(&value, '='));

    cache_control_add(control, side, name, value, has_value);
}

void cache_control_clear(struct cache_control *out)
{
    *out = (struct cache_control){.max_age = DELTA_NONE,
                                  .s_maxage = DELTA_NONE,
                                  .max_stale = DELTA_NONE,
                                  .min_fresh = DELTA_NONE,
                                  .stale_while_revalidate = DELTA_NONE,
                                  .stale_if_error = DELTA_NONE};
}

/* True if all of the text is one quoted-string (RFC 9110 5.6.4). */
static bool is_quoted(struct str text)
{
    size_t at = 1;

    if (!str_starts(text, STR("\"")))
        return false;
    while (at < text.length && text.data[at] != '"')
        at += text.data[at] == '\\' ? 2 : 1;
    return at + 1 == text.length;
}

/* token, token=token or token="text"; blanks around '=' are accepted. */
static bool is_directive(struct str member)
{
    bool has_value = str_find(member, '=') >= 0;
    struct str value = member;
    struct str name = str_trim(str_cut(&value, '='));

    return h1_is_token(name) && (!has_value || h1_is_token(str_trim(value)) || is_quoted(str_trim(value)));
}

void cache_control_read(const struct headers *headers, enum cache_side side, struct cache_control *out)
{
    struct header_list list;
    struct str member;

    cache_control_clear(out);
    header_list_start(&list, headers, STR("Cache-Control"));
    if (!list.current && side == CACHE_OF_REQUEST)
        out->no_cache = headers_list_has(headers, STR("Pragma"), STR("no-cache"));
    while (header_list_next(&list, &member)) {
        out->malformed |= !is_directive(member);
        add_directive(out, side, member);
    }
}

static int compare_names(const void *a, const void *b)
{
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

static struct str lower_case(struct arena *arena, struct str name)
{
    struct str copy = arena_copy(arena, name);
    char *byte = (char *)(uintptr_t)copy.data; /* memory of this copy */

    for (size_t i = 0; byte && i < copy.length; i++)
        byte[i] = str_lower(byte[i]);
    return copy;
}

static int collect_names(const struct headers *headers, struct arena *arena, struct str names[LIMIT_VARY_FIELDS],
                         size_t *out_count)
{
    struct header_list list;
    struct str member;
    size_t count = 0;

    header_list_start(&list, headers, STR("Vary"));
    while (header_list_next(&list, &member)) {
        if (str_equal(member, STR("*")) || !h1_is_token(member) || count == LIMIT_VARY_FIELDS)
            return -ENOTSUP;
        names[count] = lower_case(arena, member);
        if (!names[count++].data)
            return -ENOMEM;
    }
    *out_count = count;
    return 0;
}

int vary_read(const struct headers *headers, struct arena *arena, struct str *out_names)
{
    struct str names[LIMIT_VARY_FIELDS];
    size_t count, kept = 0;
    struct str all;
    int error = collect_names(headers, arena, names, &count);

    if (error < 0)
        return error;
    qsort(names, count, sizeof(names[0]), compare_names);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !str_equal(names[i], names[i - 1]))
            names[kept++] = names[i];
    }
    all = arena_join_with(arena, names, kept, STR(","));
    if (!all.data)
        return -ENOMEM;
    *out_names = all;
    return 0;
}

struct vary {
    struct str names;
    const struct headers *request_headers;
};

/* Writes the members of a field in one line; an empty field differs from an absent one. */
static void write_field_line(struct text_writer *writer, const struct headers *request_headers, struct str name)
{
    struct header_list list;
    struct str member;
    bool first = true;

    header_list_start(&list, request_headers, name);
    text_append(writer, name);
    text_append(writer, list.current ? STR("=") : STR("-"));
    while (header_list_next(&list, &member))
        text_append_next(writer, &first, STR(","), member);
    text_append(writer, STR("\n"));
}

static void write_vary(struct text_writer *writer, const void *subject)
{
    const struct vary *vary = subject;
    struct str rest = vary->names;

    while (!str_empty(rest))
        write_field_line(writer, vary->request_headers, str_cut(&rest, ','));
}

struct str vary_text(struct str names, const struct headers *request_headers, struct arena *arena)
{
    return arena_write(arena, write_vary, &(struct vary){names, request_headers});
}
