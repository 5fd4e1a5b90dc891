/*
 * Text has one line per member, with titles and subtitles on the line of their map, and positions in brackets at its
 * end; empty lists are omitted. JSON has every member and every list.
 */
#include "explain/explain_writer.h"

#include "conf/template.h"

static void write_raw(struct explain_writer *writer, struct str text)
{
    if (writer->error == 0)
        writer->error = buffer_append(writer->out, text);
}

static void write_quoted(struct explain_writer *writer, struct str text)
{
    write_raw(writer, STR("\""));
    if (writer->error == 0)
        writer->error = template_escape_json(writer->out, text);
    write_raw(writer, STR("\""));
}

static void line_begin(struct explain_writer *writer)
{
    write_raw(writer, STR("\n"));
    if (writer->error == 0)
        writer->error = buffer_printf(writer->out, "%*s", (int)(2 * writer->depth), "");
}

/* Writes the comma, the line break and the name before a value in JSON. */
static void json_member(struct explain_writer *writer, struct str name)
{
    if (writer->begun)
        write_raw(writer, STR(","));
    writer->begun = true;
    line_begin(writer);
    if (name.data) {
        write_quoted(writer, name);
        write_raw(writer, STR(": "));
    }
}

static bool contains_name(const char *name, const char *const *names)
{
    for (; *names; names++) {
        if (strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

static const char *const titles[] = {"name", "address", "module", "location", NULL};
static const char *const subtitles[] = {"does", "value", NULL};

/* Writes the name of the current list in text, before its first item. */
static void write_heading(struct explain_writer *writer)
{
    if (!writer->heading)
        return;
    writer->depth--;
    line_begin(writer);
    write_raw(writer, str_from(writer->heading));
    write_raw(writer, STR(":"));
    writer->depth++;
    writer->heading = NULL;
}

void writer_open(struct explain_writer *writer, struct str url)
{
    write_raw(writer, writer->json ? STR("{") : url);
    writer->depth = writer->json;
    if (writer->json)
        writer_text(writer, "url", url);
    else
        write_raw(writer, STR("\n"));
}

void writer_close(struct explain_writer *writer)
{
    write_raw(writer, writer->json ? STR("\n}\n") : STR("\n"));
}

void writer_begin(struct explain_writer *writer, const char *name)
{
    if (writer->json) {
        json_member(writer, name ? str_from(name) : (struct str){NULL, 0});
        write_raw(writer, STR("{"));
    } else {
        write_heading(writer);
        line_begin(writer);
        write_raw(writer, name ? str_from(name) : STR("-"));
        write_raw(writer, name ? STR(":") : STR(""));
    }
    writer->depth++;
    writer->begun = false;
}

static void level_end(struct explain_writer *writer, struct str bracket)
{
    writer->depth--;
    writer->heading = NULL;
    if (writer->json && writer->begun)
        line_begin(writer);
    if (writer->json)
        write_raw(writer, bracket);
    writer->begun = true;
}

void writer_end(struct explain_writer *writer)
{
    level_end(writer, STR("}"));
}

void writer_list(struct explain_writer *writer, const char *name)
{
    if (writer->json) {
        json_member(writer, str_from(name));
        write_raw(writer, STR("["));
    }
    writer->depth++;
    writer->heading = writer->json ? NULL : name;
    writer->begun = false;
}

void writer_list_end(struct explain_writer *writer)
{
    level_end(writer, STR("]"));
}

/* Writes the name before a value in text, unless the value is the title or the subtitle of its map. */
static void text_member(struct explain_writer *writer, const char *name)
{
    if (!writer->begun && contains_name(name, titles)) {
        write_raw(writer, STR(" "));
    } else if (writer->begun && contains_name(name, subtitles)) {
        write_raw(writer, STR(": "));
    } else {
        write_heading(writer);
        line_begin(writer);
        write_raw(writer, str_from(name));
        write_raw(writer, STR(": "));
    }
    writer->begun = true;
}

static void write_member(struct explain_writer *writer, const char *name)
{
    if (writer->json)
        json_member(writer, str_from(name));
    else
        text_member(writer, name);
}

/* Writes text with '?' in place of control bytes, which could control the terminal. */
static void write_plain(struct explain_writer *writer, struct str text)
{
    for (size_t i = 0; i < text.length; i++)
        write_raw(writer,
                  (unsigned char)text.data[i] < 32 || text.data[i] == 127 ? STR("?") : str_slice(text, i, i + 1));
}

static void write_words(struct explain_writer *writer, struct str text)
{
    if (writer->json)
        write_quoted(writer, text);
    else
        write_plain(writer, text);
}

void writer_text(struct explain_writer *writer, const char *name, struct str value)
{
    write_member(writer, name);
    write_words(writer, value);
}

void writer_number(struct explain_writer *writer, const char *name, uint64_t value)
{
    write_member(writer, name);
    if (writer->error == 0)
        writer->error = buffer_printf(writer->out, "%llu", (unsigned long long)value);
}

void writer_field(struct explain_writer *writer, struct str name, struct str value)
{
    if (writer->json) {
        json_member(writer, name);
    } else {
        line_begin(writer);
        write_plain(writer, name);
        write_raw(writer, STR(": "));
    }
    write_words(writer, value);
}

void writer_item(struct explain_writer *writer, struct str value)
{
    if (writer->json) {
        json_member(writer, (struct str){NULL, 0});
    } else {
        write_heading(writer);
        line_begin(writer);
        write_raw(writer, STR("- "));
    }
    write_words(writer, value);
}

static void write_value(struct explain_writer *writer, const struct conf_node *node)
{
    bool map = node->kind == CONF_MAP;

    if (node->kind == CONF_SCALAR) {
        write_words(writer, node->text);
        return;
    }
    write_raw(writer, map ? STR("{") : STR("["));
    for (size_t i = 0; i < node->count; i++) {
        write_raw(writer, i ? STR(", ") : STR(""));
        if (map)
            write_words(writer, node->pairs[i].key->text);
        write_raw(writer, map ? STR(": ") : STR(""));
        write_value(writer, map ? node->pairs[i].value : node->items[i]);
    }
    write_raw(writer, map ? STR("}") : STR("]"));
}

void writer_value(struct explain_writer *writer, const char *name, const struct conf_node *node)
{
    write_member(writer, name);
    write_value(writer, node);
}

void writer_mark(struct explain_writer *writer, struct conf_mark mark)
{
    if (!mark.file || writer->error < 0)
        return;
    if (writer->json) {
        writer_text(writer, "file", mark.file->path);
        writer_number(writer, "line", mark.line);
        writer_number(writer, "column", mark.column);
    } else {
        writer->error = buffer_printf(writer->out, "  (" STR_FMT ":%u)", STR_ARG(mark.file->path), mark.line);
    }
}
