/*
 * Building and printing drafts. Scalars are quoted by conf's own printer, so that what is printed here is read there as
 * it was meant.
 */
#include "import/draft.h"

#include "base/table.h"
#include "conf/conf_schema.h"
#include "conf/conf_source.h"

#include <errno.h>

enum { FEW = 16 }; /* children of a map that are looked through one by one */

struct printer {
    struct buffer *out;
    unsigned line; /* that is being written */
};

struct draft *draft_root(struct arena *arena)
{
    struct draft *root = arena_zalloc(arena, 1, sizeof(*root));

    if (root)
        root->kind = DRAFT_MAP;
    return root;
}

static struct draft **chain_of(const struct draft *map, struct str key)
{
    return &map->chains[table_hash(key, false) % map->chain_count];
}

/* Of two with the same key the first one is found. */
static void chain(struct draft *map, struct draft *child)
{
    struct draft **link = child->key.data ? chain_of(map, child->key) : NULL;

    while (link && *link && !str_equal((*link)->key, child->key))
        link = &(*link)->chained;
    if (link && !*link)
        *link = child;
}

/* More chains than there are children by now; without memory for them those are looked through one by one. */
static void chain_all(struct arena *arena, struct draft *map)
{
    map->chains = arena_zalloc(arena, 4 * map->count, sizeof(struct draft *));
    map->chain_count = map->chains ? 4 * map->count : 0;
    for (struct draft *child = map->first; child && map->chains; child = child->next) {
        child->chained = NULL;
        chain(map, child);
    }
}

struct draft *draft_find(const struct draft *map, struct str key)
{
    struct draft *child = map ? map->first : NULL;

    if (map && map->chains) {
        child = *chain_of(map, key);
        while (child && !str_equal(child->key, key))
            child = child->chained;
        return child;
    }
    while (child && !str_equal(child->key, key))
        child = child->next;
    return child;
}

struct draft *draft_add(struct arena *arena, struct draft *parent, enum draft_kind kind, struct str key,
                        const struct nginx_directive *origin)
{
    struct draft *child = parent ? arena_zalloc(arena, 1, sizeof(*child)) : NULL;

    if (!child)
        return NULL;
    *child = (struct draft){.kind = kind, .key = key, .parent = parent, .origin = origin};
    if (origin) {
        child->before = origin->before;
        child->behind = origin->behind;
        child->after = origin->after;
    }
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
    if (parent->kind == DRAFT_MAP && parent->count > FEW && parent->count > parent->chain_count)
        chain_all(arena, parent);
    else if (parent->chains)
        chain(parent, child);
    return child;
}

struct draft *draft_open(struct arena *arena, struct draft *map, enum draft_kind kind, struct str key)
{
    struct draft *child = draft_find(map, key);

    if (!child)
        return draft_add(arena, map, kind, key, NULL);
    return child->kind == kind ? child : NULL;
}

void draft_lead(struct draft *parent)
{
    struct draft *before = parent ? parent->first : NULL;

    if (!before || before == parent->last)
        return;
    while (before->next != parent->last)
        before = before->next;
    parent->last->next = parent->first;
    parent->first = parent->last;
    parent->last = before;
    before->next = NULL;
}

/* Printing. */

static int end_line(struct printer *printer)
{
    printer->line++;
    return buffer_append(printer->out, STR("\n"));
}

static int indent_print(struct printer *printer, unsigned indent)
{
    return buffer_printf(printer->out, "%*s", (int)indent, "");
}

int draft_print_text(struct buffer *out, struct str text)
{
    int error = 0;

    for (size_t at = 0; at < text.length && error == 0;) {
        uint32_t code = 0;
        size_t length = source_character(text, at, &code);
        bool odd = length == 0 || !source_allowed(code) || code == '\n' || code == '\r';

        length = length ? length : 1;
        error = buffer_append(out, odd ? STR("?") : str_slice(text, at, at + length));
        at += length;
    }
    return error;
}

/* "# text", whatever stood behind the sign. */
static int comment_print(struct printer *printer, struct str comment)
{
    struct str text = str_skip(comment, str_starts(comment, STR("#")));
    bool spaced = str_empty(text) || text.data[0] == ' ' || text.data[0] == '#';
    int error = buffer_append(printer->out, spaced ? STR("#") : STR("# "));

    return error == 0 ? draft_print_text(printer->out, text) : error;
}

static int comments_print(struct printer *printer, struct str comments, unsigned indent)
{
    int error = 0;

    while (comments.data && error == 0) {
        struct str line = str_cut(&comments, '\n');

        error = indent_print(printer, indent);
        if (error == 0)
            error = comment_print(printer, line);
        if (error == 0)
            error = end_line(printer);
    }
    return error;
}

static int behind_print(struct printer *printer, struct str comment)
{
    int error = 0;

    if (comment.data) {
        error = buffer_append(printer->out, STR(" "));
        if (error == 0)
            error = comment_print(printer, comment);
    }
    return error == 0 ? end_line(printer) : error;
}

static int scalar_print(struct printer *printer, struct str text)
{
    struct conf_node node = {.kind = CONF_SCALAR, .text = text};
    int error = conf_print_tree(&node, printer->out);

    if (error == 0)
        printer->out->length--; /* the end of the line, which may have a comment yet */
    return error;
}

/* What was left out, where it stood: its first line is enough to find it. */
static int left_out_print(struct printer *printer, const struct draft *draft, unsigned indent)
{
    const struct nginx_directive *origin = draft->origin;
    int error = comments_print(printer, draft->before, indent);

    if (error == 0)
        error = indent_print(printer, indent);
    if (error == 0)
        error = buffer_append(printer->out, STR("# not carried over: "));
    if (error == 0)
        error = draft_print_text(printer->out, origin ? origin->name : draft->key);
    for (size_t i = 0; origin && i < origin->count && error == 0; i++) {
        error = buffer_append(printer->out, STR(" "));
        if (error == 0)
            error = draft_print_text(printer->out, origin->words[i]);
    }
    if (error == 0 && origin && origin->block)
        error = buffer_append(printer->out, STR(" { }"));
    return error == 0 ? end_line(printer) : error;
}

static const struct draft *only_child(const struct draft *list)
{
    const struct draft *only = NULL;

    for (const struct draft *child = list->first; child; child = child->next) {
        if (only || child->left_out)
            return NULL;
        only = child;
    }
    return only;
}

bool draft_prints(const struct draft *draft)
{
    if (draft->left_out)
        return false;
    if (draft->kind == DRAFT_TEXT || draft->origin)
        return true;
    for (const struct draft *child = draft->first; child; child = child->next) {
        if (draft_prints(child))
            return true;
    }
    return false;
}

static bool has_printed_child(const struct draft *draft)
{
    for (const struct draft *child = draft->first; child; child = child->next) {
        if (draft_prints(child))
            return true;
    }
    return false;
}

static int children_print(struct printer *printer, struct draft *draft, unsigned indent, bool inline_start);

/* The one text in a list, which stands on the line of its key; NULL: it is no such list. */
static const struct draft *only_text(const struct draft *draft)
{
    const struct draft *only = draft->kind == DRAFT_LIST ? only_child(draft) : NULL;

    return only && only->kind == DRAFT_TEXT ? only : NULL;
}

static int comments_above_print(struct printer *printer, const struct draft *child, unsigned indent)
{
    const struct draft *only = only_text(child);
    int error = comments_print(printer, child->before, indent);

    return error == 0 && only ? comments_print(printer, only->before, indent) : error;
}

static bool has_comments_above(const struct draft *child)
{
    const struct draft *only = only_text(child);

    return child->before.data || (only && only->before.data);
}

/* What stands behind "key:" or "-"; the line is begun. */
static int value_print(struct printer *printer, struct draft *draft, unsigned indent)
{
    struct draft *only = (struct draft *)(uintptr_t)only_text(draft);
    int error;

    if (only) {
        only->line = only->last_line = printer->line;
        draft = only;
    }
    if (draft->kind != DRAFT_TEXT && has_printed_child(draft)) {
        error = behind_print(printer, draft->behind);
        return error == 0 ? children_print(printer, draft, indent + 2, false) : error;
    }
    error = buffer_append(printer->out, STR(" "));
    if (error == 0)
        error = draft->kind == DRAFT_TEXT
                    ? scalar_print(printer, draft->text)
                    : buffer_append(printer->out, draft->kind == DRAFT_MAP ? STR("{}") : STR("[]"));
    if (error == 0)
        error = behind_print(printer, draft->behind);
    /* Nothing but comments in it: they follow. */
    return error == 0 && draft->kind != DRAFT_TEXT ? children_print(printer, draft, indent + 2, false)
                                                   : error;
}

static int item_print(struct printer *printer, struct draft *draft, unsigned indent)
{
    int error = buffer_append(printer->out, STR("-"));

    if (error == 0 && draft->kind == DRAFT_MAP && has_printed_child(draft) &&
        !has_comments_above(draft->first) && !draft->behind.data && draft_prints(draft->first)) {
        error = buffer_append(printer->out, STR(" "));
        return error == 0 ? children_print(printer, draft, indent + 2, true) : error;
    }
    return error == 0 ? value_print(printer, draft, indent) : error;
}

static int pair_print(struct printer *printer, struct draft *draft, unsigned indent)
{
    bool simple = draft->key.length <= 240;
    int error = simple ? 0 : buffer_append(printer->out, STR("? "));

    if (error == 0)
        error = scalar_print(printer, draft->key);
    if (error == 0 && !simple) {
        error = end_line(printer);
        if (error == 0)
            error = indent_print(printer, indent);
    }
    if (error == 0)
        error = buffer_append(printer->out, STR(":"));
    return error == 0 ? value_print(printer, draft, indent) : error;
}

/* inline_start: the line of the first child is begun already. */
static int children_print(struct printer *printer, struct draft *draft, unsigned indent, bool inline_start)
{
    int error = 0;

    for (struct draft *child = draft->first; child && error == 0; child = child->next) {
        if (child->left_out) {
            error = left_out_print(printer, child, indent);
            continue;
        }
        if (!draft_prints(child)) {
            child->line = child->last_line = 0;
            error = comments_print(printer, child->before, indent);
            if (error == 0)
                error = children_print(printer, child, indent, false);
            continue;
        }
        if (!inline_start) {
            error = comments_above_print(printer, child, indent);
            if (error == 0)
                error = indent_print(printer, indent);
        }
        inline_start = false;
        child->line = printer->line;
        if (error == 0)
            error = draft->kind == DRAFT_MAP ? pair_print(printer, child, indent)
                                             : item_print(printer, child, indent);
        child->last_line = printer->line - 1;
    }
    return error == 0 ? comments_print(printer, draft->after, indent) : error;
}

int draft_print(struct draft *root, struct buffer *out)
{
    struct printer printer = {.out = out, .line = 1};

    for (size_t i = 0; i < out->length; i++)
        printer.line += out->data[i] == '\n';
    return children_print(&printer, root, 0, false) < 0 ? -ENOMEM : 0;
}

struct draft *draft_at(struct draft *root, unsigned line)
{
    struct draft *found = NULL;

    for (struct draft *child = root->first; child; child = child->next) {
        struct draft *inner;

        if (child->left_out || line < child->line || line > child->last_line)
            continue;
        inner = draft_at(child, line);
        if (inner)
            found = inner;
        else if (child->origin)
            found = child;
    }
    return found;
}
