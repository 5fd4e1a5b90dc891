/*
 * Header fields in order: lookup, change, and iteration over comma-separated lists. Names are compared ignoring ASCII
 * case.
 */
#include "http/headers.h"

#include "base/table.h"
#include "base/text_writer.h"

#include <errno.h>

#define FIRST_CAPACITY 16

static struct header *find_from(const struct headers *headers, struct str name, unsigned at)
{
    for (; at < headers->count; at++) {
        struct header *field = &headers->items[at];

        if (field->name.length == name.length && str_equal_nocase(field->name, name))
            return field;
    }
    return NULL;
}

bool header_same_variable(struct str a, struct str b)
{
    for (size_t i = 0; a.length == b.length && i < a.length; i++) {
        char left = a.data[i] == '_' ? '-' : str_lower(a.data[i]);
        char right = b.data[i] == '_' ? '-' : str_lower(b.data[i]);

        if (left != right)
            return false;
    }
    return a.length == b.length;
}

bool header_imitates(struct str name)
{
    static const char *const own[] = {
        "Accept-Encoding", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type",
        "Early-Data", "HTTP2-Settings", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range",
        "If-Unmodified-Since", "Keep-Alive", "Max-Forwards", "Proxy-Authorization", "Proxy-Connection", "Set-Cookie",
        "Transfer-Encoding", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto",
        "X-Forwarded-Server", "X-Real-IP"};

    if (str_find(name, '_') < 0)
        return false;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (header_same_variable(name, str_from(own[i])))
            return true;
    }
    return false;
}

struct header *headers_find(const struct headers *headers, struct str name)
{
    return find_from(headers, name, 0);
}

struct header *headers_next(const struct headers *headers, struct str name, const struct header *previous)
{
    return find_from(headers, name, (unsigned)(previous - headers->items) + 1);
}

struct str headers_value(const struct headers *headers, struct str name)
{
    struct header *field = headers_find(headers, name);

    return field ? field->value : (struct str){NULL, 0};
}

int headers_grow(struct headers *headers, struct arena *arena)
{
    unsigned capacity = headers->capacity ? headers->capacity * 2 : FIRST_CAPACITY;
    struct header *items;

    if (capacity < headers->capacity)
        return -ENOMEM;
    items = arena_alloc(arena, (size_t)capacity * sizeof(*items));
    if (!items)
        return -ENOMEM;
    if (headers->count)
        memcpy(items, headers->items, headers->count * sizeof(*items));
    headers->items = items;
    headers->capacity = capacity;
    return 0;
}

int headers_set(struct headers *headers, struct arena *arena, struct str name, struct str value)
{
    struct header *first = headers_find(headers, name);
    unsigned kept;

    if (!first)
        return headers_add(headers, arena, name, value);
    *first = (struct header){name, value};
    kept = (unsigned)(first - headers->items) + 1;
    for (unsigned i = kept; i < headers->count; i++) {
        if (!str_equal_nocase(headers->items[i].name, name))
            headers->items[kept++] = headers->items[i];
    }
    headers->count = kept;
    return 0;
}

int headers_copy(struct headers *headers, struct arena *arena, const struct headers *from)
{
    for (unsigned i = 0; i < from->count; i++) {
        struct str name = arena_copy(arena, from->items[i].name);
        struct str value = arena_copy(arena, from->items[i].value);

        if (!name.data || !value.data || headers_add(headers, arena, name, value) < 0)
            return -ENOMEM;
    }
    return 0;
}

struct join {
    const struct headers *headers;
    bool (*matches)(struct str wanted, struct str name);
    struct str wanted, separator;
};

static void write_join(struct text_writer *writer, const void *subject)
{
    const struct join *join = subject;
    bool first = true;

    for (unsigned i = 0; i < join->headers->count; i++) {
        const struct header *field = &join->headers->items[i];

        if (join->matches(join->wanted, field->name))
            text_append_next(writer, &first, join->separator, field->value);
    }
}

int headers_join(const struct headers *headers, bool (*matches)(struct str wanted, struct str name),
                 struct str wanted, struct str separator, struct arena *arena, struct str *out_value)
{
    const struct join join = {headers, matches, wanted, separator};
    struct str value = {NULL, 0};
    unsigned count = 0;

    for (unsigned i = 0; i < headers->count && count < 2; i++) {
        if (matches(wanted, headers->items[i].name) && ++count == 1)
            value = headers->items[i].value;
    }
    if (count > 1) {
        value = arena_write(arena, write_join, &join);
        if (!value.data)
            return -ENOMEM;
    }
    *out_value = value;
    return 0;
}

void headers_remove(struct headers *headers, struct str name)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < headers->count; i++) {
        if (!str_equal_nocase(headers->items[i].name, name))
            headers->items[kept++] = headers->items[i];
    }
    headers->count = kept;
}

/* Hashed field names: the index of a field plus 1, or 0; at least half of the slots are 0. */
struct name_index {
    const struct headers *headers;
    uint32_t *slots;
    uint32_t mask;
};

static uint32_t *find_slot(const struct name_index *index, struct str name)
{
    uint32_t at = table_hash(name, true) & index->mask;

    while (index->slots[at] && !str_equal_nocase(index->headers->items[index->slots[at] - 1].name, name))
        at = (at + 1) & index->mask;
    return &index->slots[at];
}

static int build_name_index(struct name_index *index, struct arena *arena, const struct headers *headers)
{
    size_t slots = 16;

    while (slots < 2 * (size_t)headers->count)
        slots *= 2;
    *index = (struct name_index){.headers = headers, .mask = (uint32_t)(slots - 1)};
    index->slots = arena_zalloc(arena, slots, sizeof(*index->slots));
    if (!index->slots)
        return -ENOMEM;
    for (unsigned i = 0; i < headers->count; i++)
        *find_slot(index, headers->items[i].name) = i + 1;
    return 0;
}

int headers_remove_named(struct headers *headers, struct arena *arena, const struct headers *named)
{
    struct name_index index;
    unsigned kept = 0;

    if (headers->count == 0 || named->count == 0)
        return 0;
    if (build_name_index(&index, arena, named) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < headers->count; i++) {
        if (!*find_slot(&index, headers->items[i].name))
            headers->items[kept++] = headers->items[i];
    }
    headers->count = kept;
    return 0;
}

void header_list_start(struct header_list *list, const struct headers *headers, struct str name)
{
    *list = (struct header_list){.headers = headers, .name = name};
    list->current = headers_find(headers, name);
    if (list->current)
        list->rest = list->current->value;
}

struct str header_cut(struct str *rest, char separator)
{
    struct str whole = *rest;
    bool quoted = false;

    for (size_t i = 0; i < whole.length; i++) {
        char c = whole.data[i];

        if (quoted && c == '\\') {
            i++;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (c == separator && !quoted) {
            *rest = str_skip(whole, i + 1);
            return str_slice(whole, 0, i);
        }
    }
    *rest = (struct str){NULL, 0};
    return whole;
}

bool header_list_next(struct header_list *list, struct str *out_member)
{
    while (list->current) {
        while (list->rest.data) {
            struct str member = str_trim(header_cut(&list->rest, ','));

            if (member.length) {
                *out_member = member;
                return true;
            }
        }
        list->current = headers_next(list->headers, list->name, list->current);
        if (list->current)
            list->rest = list->current->value;
    }
    return false;
}

bool headers_list_has(const struct headers *headers, struct str name, struct str token)
{
    struct header_list list;
    struct str member;

    header_list_start(&list, headers, name);
    while (header_list_next(&list, &member)) {
        if (str_equal_nocase(str_trim(str_cut(&member, ';')), token))
            return true;
    }
    return false;
}
