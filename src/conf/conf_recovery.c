/*
 * Recovery from a syntax error: blanks out the block with the error in the text, which is then parsed again, so that
 * further errors are found.
 */
#include "conf/conf_parse.h"

static bool tab_indented(struct str line)
{
    size_t blanks = 0;

    while (blanks < line.length && line.data[blanks] == ' ')
        blanks++;
    return blanks < line.length && line.data[blanks] == '\t';
}

static size_t line_indentation(struct str line)
{
    size_t blanks = 0;

    while (blanks < line.length && (line.data[blanks] == ' ' || line.data[blanks] == '\t'))
        blanks++;
    return blanks;
}

/* Warns that the lines below a line with a syntax error were not checked. */
static void report_unchecked(struct conf_errors *errors, const struct conf_file *file, unsigned broken, unsigned from,
                             unsigned to)
{
    struct conf_mark mark = {file, from, (unsigned)line_indentation(source_line(file, from)) + 1};

    if (from == to)
        conf_warning(errors, mark, STR(""), "line %u was not checked, because of the error in line %u", from,
                     broken);
    else
        conf_warning(errors, mark, STR(""),
                     "lines %u to %u were not checked, because of the error in line %u", from, to, broken);
}

/*
 * The column from which a line is blanked out: after the dash of a list item, so that the other keys of the item can
 * still be parsed. If the item begins with a bracket, the whole item is blanked out.
 */
static size_t broken_column(struct str whole, const char *text)
{
    size_t dash = line_indentation(whole);
    size_t at = dash + 2;

    if (!str_starts(str_skip(whole, dash), STR("- ")))
        return dash;
    while (at < whole.length && text[at] == ' ')
        at++;
    return at < whole.length && !strchr("[{", text[at]) ? at : dash;
}

/*
 * Blanks out the line and the lines indented below it; if tabs indent the line, only following lines that begin with
 * tabs. False: all of them were blank already.
 */
static bool block_blank(struct conf_errors *errors, const struct conf_file *file, char *text, unsigned line)
{
    unsigned from = 0, to = 0;
    struct str first = source_line(file, line);
    bool tabs = tab_indented(first);
    size_t indent = broken_column(first, text + (first.data - file->text.data));
    bool blanked = false;

    for (unsigned at = line; at >= 1 && at <= file->line_count; at++) {
        struct str whole = source_line(file, at);
        char *start = text + (whole.data - file->text.data);

        if (at > line &&
            (tabs ? !tab_indented(whole) : line_indentation(whole) <= indent && line_indentation(whole) < whole.length))
            break;
        for (size_t i = at == line && !tabs ? indent : 0; i < whole.length; i++) {
            if (start[i] != ' ' && at > line) {
                from = from ? from : at;
                to = at;
            }
            blanked |= start[i] != ' ';
            start[i] = ' ';
        }
    }
    if (to)
        report_unchecked(errors, file, line, from, to);
    return blanked;
}

/*
 * Removes the errors that this pass reported about lines below the broken one: they may be consequences of it (an open
 * bracket contains everything after it), and the next pass parses these lines again. The first `count` errors are of
 * earlier passes.
 */
static void errors_remove_below(struct conf_errors *errors, unsigned count, unsigned read, unsigned line)
{
    unsigned kept = count;

    for (unsigned i = count; i < errors->count; i++) {
        if (i >= read || errors->items[i].mark.line <= line)
            errors->items[kept++] = errors->items[i];
    }
    errors->count = kept;
}

bool syntax_skip(struct parse *parse, char *text, unsigned known)
{
    struct conf_errors *errors = parse->loader->errors;
    unsigned read = errors->count;
    unsigned line;

    errors->muted_count = 0; /* a syntax error may be at the position of a value; the next pass mutes again */
    line = syntax_report(errors, parse->file, &parse->yaml, &parse->last);
    errors_remove_below(errors, known, read, line);
    return block_blank(errors, parse->file, text, line);
}
