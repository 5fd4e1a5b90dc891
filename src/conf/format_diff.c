/*
 * What formatting would change, as a unified diff. Formatting keeps words and their order, so that lines that are the
 * same but for their blanks belong together; nothing needs to be searched far away.
 */
#include "conf/format.h"

#include <errno.h>
#include <stdlib.h>

enum { CONTEXT = 3, LOOK_AHEAD = 32 };

struct lines {
    struct str *items;
    size_t count;
    bool unended; /* the last one has no line end */
};

struct edit {
    char kind; /* ' ', '-' or '+' */
    bool unended;
    struct str line;
};

struct diff {
    struct lines before, after;
    struct edit *edits;
    size_t count;
    size_t before_at, after_at; /* lines told, or passed over */
    struct buffer *out;
};

static int split_lines(struct str text, struct lines *out)
{
    size_t count = 0;

    for (size_t i = 0; i < text.length; i++)
        count += text.data[i] == '\n';
    out->unended = text.length && text.data[text.length - 1] != '\n';
    out->items = calloc(count + out->unended + 1, sizeof(*out->items));
    if (!out->items)
        return -ENOMEM;
    while (text.length)
        out->items[out->count++] = str_cut(&text, '\n');
    return 0;
}

static size_t skip_blanks(struct str line, size_t at)
{
    while (at < line.length && (line.data[at] == ' ' || line.data[at] == '\t' || line.data[at] == '\r'))
        at++;
    return at;
}

static bool lines_equal(struct str a, struct str b)
{
    size_t i = skip_blanks(a, 0), k = skip_blanks(b, 0);

    while (i < a.length && k < b.length && a.data[i] == b.data[k]) {
        i = skip_blanks(a, i + 1);
        k = skip_blanks(b, k + 1);
    }
    return i == a.length && k == b.length;
}

static void add_edit(struct diff *diff, char kind)
{
    const struct lines *lines = kind == '+' ? &diff->after : &diff->before;
    size_t at = kind == '+' ? diff->after_at : diff->before_at;

    diff->edits[diff->count++] =
        (struct edit){.kind = kind, .line = lines->items[at], .unended = lines->unended && at + 1 == lines->count};
    diff->before_at += kind != '+';
    diff->after_at += kind != '-';
}

/* How many lines are passed over, on either side, until two are alike; those at hand where there are none such. */
static void find_equal_lines(const struct diff *diff, size_t *out_before, size_t *out_after)
{
    size_t before = diff->before.count - diff->before_at, after = diff->after.count - diff->after_at;

    for (size_t sum = 0; sum <= LOOK_AHEAD; sum++) {
        for (size_t i = 0; i <= sum; i++) {
            *out_before = i;
            *out_after = sum - i;
            if (i < before && sum - i < after &&
                lines_equal(diff->before.items[diff->before_at + i], diff->after.items[diff->after_at + sum - i]))
                return;
        }
    }
    *out_before = before > 0;
    *out_after = after > 0;
}

static bool is_unchanged_line(const struct diff *diff)
{
    const struct lines *before = &diff->before, *after = &diff->after;

    return str_equal(before->items[diff->before_at], after->items[diff->after_at]) &&
           (before->unended && diff->before_at + 1 == before->count) ==
               (after->unended && diff->after_at + 1 == after->count);
}

static void compare_lines(struct diff *diff)
{
    while (diff->before_at < diff->before.count || diff->after_at < diff->after.count) {
        bool both = diff->before_at < diff->before.count && diff->after_at < diff->after.count;
        size_t gone, come;

        if (both && is_unchanged_line(diff)) {
            add_edit(diff, ' ');
            continue;
        }
        find_equal_lines(diff, &gone, &come);
        if (gone + come == 0)
            gone = come = 1;
        while (gone-- > 0)
            add_edit(diff, '-');
        while (come-- > 0)
            add_edit(diff, '+');
    }
}

static int print_line(struct buffer *out, const struct edit *edit)
{
    int error = buffer_append(out, str_of(&edit->kind, 1));

    if (error == 0)
        error = buffer_append(out, edit->line);
    if (error == 0)
        error = buffer_append(out, edit->unended ? STR("\n\\ No newline at end of file\n") : STR("\n"));
    return error;
}

/* Of what changes without a line between that stays, all that goes stands before all that comes. */
static int print_edits(struct buffer *out, const struct edit *edits, size_t count)
{
    int error = 0;

    for (size_t at = 0, end; at < count && error == 0; at = end) {
        for (end = at + 1; end < count && edits[at].kind != ' ' && edits[end].kind != ' '; end++)
            ;
        for (size_t pass = 0; pass < 2; pass++) {
            for (size_t i = at; i < end && error == 0; i++) {
                if ((edits[i].kind == '+') == (pass == 1))
                    error = print_line(out, &edits[i]);
            }
        }
    }
    return error;
}

/* Line numbers count from 1; a side without lines is named by the line before it. */
static int print_hunk(struct diff *diff, size_t from, size_t to)
{
    size_t before = 0, after = 0;
    int error;

    for (size_t i = from; i < to; i++) {
        before += diff->edits[i].kind != '+';
        after += diff->edits[i].kind != '-';
    }
    error = buffer_printf(diff->out, "@@ -%zu,%zu +%zu,%zu @@\n", diff->before_at + (before > 0), before,
                          diff->after_at + (after > 0), after);
    diff->before_at += before;
    diff->after_at += after;
    return error < 0 ? error : print_edits(diff->out, diff->edits + from, to - from);
}

/* The end of the change that begins at `at`, and of those that are too near for a hunk of their own. */
static size_t change_end(const struct diff *diff, size_t at)
{
    size_t end = at;

    for (; at < diff->count && at - end <= 2 * CONTEXT; at++) {
        if (diff->edits[at].kind != ' ')
            end = at + 1;
    }
    return end;
}

static int print_hunks(struct diff *diff)
{
    size_t shown = 0;
    int error = 0;

    diff->before_at = diff->after_at = 0;
    for (size_t at = 0; at < diff->count && error == 0; at++) {
        size_t from, to;

        if (diff->edits[at].kind == ' ')
            continue;
        from = at - shown > CONTEXT ? at - CONTEXT : shown;
        to = change_end(diff, at);
        to = diff->count - to > CONTEXT ? to + CONTEXT : diff->count;
        diff->before_at += from - shown;
        diff->after_at += from - shown;
        error = print_hunk(diff, from, to);
        shown = to;
        at = to - 1;
    }
    return error;
}

int format_diff(struct str name, struct str before, struct str after, struct buffer *out)
{
    struct diff diff = {.out = out};
    int error = -ENOMEM;

    if (str_equal(before, after))
        return 0;
    if (split_lines(before, &diff.before) == 0 && split_lines(after, &diff.after) == 0)
        diff.edits = calloc(diff.before.count + diff.after.count, sizeof(*diff.edits));
    if (diff.edits) {
        compare_lines(&diff);
        error = buffer_printf(out, "--- " STR_FMT ".orig\n+++ " STR_FMT "\n", STR_ARG(name), STR_ARG(name));
        if (error == 0)
            error = print_hunks(&diff);
    }
    free(diff.edits);
    free(diff.after.items);
    free(diff.before.items);
    return error;
}
