/*
 * Collects errors of a configuration and prints them as compilers do: position, line with a caret, hint.
 */
#include "conf/conf_tree.h"

#include "base/utf8.h"
#include "conf/source_text.h"

#include <errno.h>
#include <stdarg.h>

#define SHOWN_BEFORE 80 /* characters of a long line shown before and after the caret */

static const char out_of_memory[] = "out of memory while reading the configuration";

static bool mark_equal(struct conf_mark a, struct conf_mark b)
{
    return a.file == b.file && a.line == b.line && a.column == b.column;
}

static bool already_known(const struct conf_errors *errors, const struct conf_error *error)
{
    for (unsigned i = 0; i < errors->count; i++) {
        const struct conf_error *known = &errors->items[i];

        if (mark_equal(known->mark, error->mark) && str_equal(known->message, error->message))
            return true;
    }
    return false;
}

static bool is_muted(const struct conf_errors *errors, struct conf_mark mark)
{
    for (unsigned i = 0; i < errors->muted_count; i++) {
        if (mark_equal(errors->muted[i], mark))
            return true;
    }
    return false;
}

void conf_errors_mute(struct conf_errors *errors, struct conf_mark mark)
{
    if (errors->muted_count < LIMIT_CONF_ERRORS)
        errors->muted[errors->muted_count++] = mark;
}

/* Replaces control characters: messages quote the file, which may contain terminal escapes. */
static void controls_hide(struct str text)
{
    char *bytes = (char *)(uintptr_t)text.data;

    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)bytes[i] < 32 || bytes[i] == 127)
            bytes[i] = '?';
    }
}

/* Removes the latest warning. False: there is none. */
static bool warning_drop(struct conf_errors *errors)
{
    unsigned at = errors->count;

    while (at > 0 && !errors->items[at - 1].warning)
        at--;
    if (at == 0)
        return false;
    memmove(&errors->items[at - 1], &errors->items[at], (errors->count - at) * sizeof(errors->items[0]));
    errors->count--;
    return true;
}

PRINTF_LIKE(3, 0)
static void error_add(struct conf_errors *errors, struct conf_error error, const char *format, va_list args)
{
    errors->failed |= !error.warning;
    if (is_muted(errors, error.mark))
        return;
    /* At the cap an error replaces a warning; otherwise nothing is stored. */
    if (errors->count == LIMIT_CONF_ERRORS) {
        errors->dropped++;
        if (error.warning || !warning_drop(errors))
            return;
    }
    error.message = arena_vprintf(errors->arena, format, args);
    error.hint = arena_copy(errors->arena, error.hint);
    if (!error.message.data || !error.hint.data) {
        error.message = str_of(out_of_memory, sizeof(out_of_memory) - 1);
        error.hint = STR("");
    } else {
        controls_hide(error.message);
        controls_hide(error.hint);
    }
    if (!already_known(errors, &error))
        errors->items[errors->count++] = error;
}

void conf_error(struct conf_errors *errors, struct conf_mark mark, struct str hint, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    error_add(errors, (struct conf_error){.mark = mark, .hint = hint}, format, args);
    va_end(args);
}

void conf_warning(struct conf_errors *errors, struct conf_mark mark, struct str hint, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    error_add(errors, (struct conf_error){.mark = mark, .hint = hint, .warning = true}, format, args);
    va_end(args);
}

void conf_mark_hide(struct conf_mark mark)
{
    if (mark.file && mark.line > 0 && mark.line <= mark.file->line_count)
        mark.file->secret_lines[mark.line - 1] = true;
}

struct str conf_hint(struct conf_errors *errors, const char *format, ...)
{
    struct str hint;
    va_list args;

    va_start(args, format);
    hint = arena_vprintf(errors->arena, format, args);
    va_end(args);
    return hint.data ? hint : STR("");
}

static bool mark_precedes(const struct conf_mark *a, const struct conf_mark *b)
{
    unsigned file_a = a->file ? a->file->order + 1 : 0;
    unsigned file_b = b->file ? b->file->order + 1 : 0;

    if (file_a != file_b)
        return file_a < file_b;
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* One character of the excerpt: tabs are visible, control characters are not printed. */
static int character_print(struct str line, size_t *at, struct buffer *out)
{
    uint32_t code = 0;
    size_t length = utf8_decode(str_skip(line, *at), &code);
    struct str shown = str_slice(line, *at, *at + length);

    if (code == '\t')
        shown = STR("\xe2\x86\x92");
    else if (length == 0 || !source_allowed(code))
        shown = STR("\xef\xbf\xbd");
    *at += length ? length : 1;
    return buffer_append(out, shown);
}

/* The line, and a caret below it; tabs are made visible, and a long line is truncated on both sides of the caret. */
static int excerpt_print(const struct conf_mark *mark, struct buffer *out)
{
    struct str line = source_line(mark->file, mark->line);
    unsigned from = mark->column > SHOWN_BEFORE ? mark->column - SHOWN_BEFORE : 1;
    unsigned column = 1;
    unsigned shown = mark->column > from ? mark->column - from : 0;
    size_t at = 0;
    int error;

    if (mark->line <= mark->file->line_count && mark->file->secret_lines[mark->line - 1])
        return buffer_printf(out, "%5u | (not shown: the line has a secret)\n", mark->line);
    error = buffer_printf(out, "%5u | %s", mark->line, from > 1 ? "..." : "");
    for (; column < from && at < line.length; column++) {
        uint32_t code;
        size_t length = utf8_decode(str_skip(line, at), &code);

        at += length ? length : 1;
    }
    for (; at < line.length && column <= mark->column + SHOWN_BEFORE && error == 0; column++)
        error = character_print(line, &at, out);
    if (error == 0 && at < line.length)
        error = buffer_append(out, STR("..."));
    if (error == 0)
        error = buffer_printf(out, "\n      | %*s^\n", (int)(shown + (from > 1 ? 3 : 0)), "");
    return error;
}

static int includes_print(const struct conf_file *file, struct buffer *out)
{
    int error = 0;

    for (; file->included_at.file && error == 0; file = file->included_at.file)
        error = buffer_printf(out, "      included from " STR_FMT ":%u\n",
                              STR_ARG(file->included_at.file->path), file->included_at.line);
    return error;
}

static int error_print(const struct conf_error *item, struct buffer *out)
{
    const char *kind = item->warning ? "warning" : "error";
    int error = 0;

    if (!item->mark.file)
        error = buffer_printf(out, "%s: " STR_FMT "\n", kind, STR_ARG(item->message));
    else if (!item->mark.line)
        error = buffer_printf(out, STR_FMT ": %s: " STR_FMT "\n", STR_ARG(item->mark.file->path), kind,
                              STR_ARG(item->message));
    else
        error = buffer_printf(out, STR_FMT ":%u:%u: %s: " STR_FMT "\n", STR_ARG(item->mark.file->path),
                              item->mark.line, item->mark.column, kind, STR_ARG(item->message));
    if (error == 0 && item->mark.file && item->mark.line)
        error = excerpt_print(&item->mark, out);
    if (error == 0 && item->hint.length)
        error = buffer_printf(out, "      hint: " STR_FMT "\n", STR_ARG(item->hint));
    if (error == 0 && item->mark.file)
        error = includes_print(item->mark.file, out);
    return error;
}

int conf_errors_print(const struct conf_errors *errors, struct buffer *out)
{
    const struct conf_error *sorted[LIMIT_CONF_ERRORS];
    int error = 0;

    for (unsigned i = 0; i < errors->count; i++) {
        unsigned at = i;

        for (; at > 0 && mark_precedes(&errors->items[i].mark, &sorted[at - 1]->mark); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &errors->items[i];
    }
    for (unsigned i = 0; i < errors->count && error == 0; i++)
        error = error_print(sorted[i], out);
    if (error == 0 && errors->dropped)
        error = buffer_printf(out, "and %u more\n", errors->dropped);
    return error;
}
