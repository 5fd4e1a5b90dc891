/*
 * Lines for people: a member a line, what is short beside its name, places behind it in brackets; lists without items
 * are left out. JSON has all of it, each member under its name.
 */
#include "explain/explain_writer.h"

#include "conf/template.h"

static void put_text(struct explain_writer *writer, struct str text)
{
    if (writer->error == 0)
        writer->error = buffer_append(writer->out, text);
}

static void put_quoted(struct explain_writer *writer, struct str text)
{
    put_text(writer, STR("\""));
    if (writer->error == 0)
        writer->error = template_escape_json(writer->out, text);
    put_text(writer, STR("\""));
}

static void line_begin(struct explain_writer *writer)
{
    put_text(writer, STR("\n"));
    if (writer->error == 0)
        writer->error = buffer_printf(writer->out, "%*s", (int)(2 * writer->depth), "");
}

/* In JSON the comma, the line and the name before a value. */
static void json_member(struct explain_writer *writer, struct str name)
{
    if (writer->begun)
        put_text(writer, STR(","));
    writer->begun = true;
    line_begin(writer);
    if (name.data) {
        put_quoted(writer, name);
        put_text(writer, STR(": "));
    }
}

/* What an item of a list, or a map, is called by, and what follows the name at once. */
static bool is_listed(const char *name, const char *const *names)
{
    for (; *names; names++) {
        if (strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

static const char *const titles[] = {"name", "address", "module", "location", NULL};
static const char *const subtitles[] = {"does", "value", NULL};

/* The name of a list waits for its first item. */
static void heading_put(struct explain_writer *writer)
{
    if (!writer->heading)
        return;
    writer->depth--;
    line_begin(writer);
    put_text(writer, str_from(writer->heading));
    put_text(writer, STR(":"));
    writer->depth++;
    writer->heading = NULL;
}

void writer_open(struct explain_writer *writer, struct str url)
{
    put_text(writer, writer->json ? STR("{") : url);
    writer->depth = writer->json;
    if (writer->json)
        writer_text(writer, "url", url);
    else
        put_text(writer, STR("\n"));
}

void writer_close(struct explain_writer *writer)
{
    put_text(writer, writer->json ? STR("\n}\n") : STR("\n"));
}

void writer_begin(struct explain_writer *writer, const char *name)
{
    if (writer->json) {
        json_member(writer, name ? str_from(name) : (struct str){NULL, 0});
        put_text(writer, STR("{"));
    } else {
        heading_put(writer);
        line_begin(writer);
        put_text(writer, name ? str_from(name) : STR("-"));
        put_text(writer, name ? STR(":") : STR(""));
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
        put_text(writer, bracket);
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
        put_text(writer, STR("["));
    }
    writer->depth++;
    writer->heading = writer->json ? NULL : name;
    writer->begun = false;
}

void writer_list_end(struct explain_writer *writer)
{
    level_end(writer, STR("]"));
}

/* In text: before a value. */
static void text_member(struct explain_writer *writer, const char *name)
{
    if (!writer->begun && is_listed(name, titles)) {
        put_text(writer, STR(" "));
    } else if (writer->begun && is_listed(name, subtitles)) {
        put_text(writer, STR(": "));
    } else {
        heading_put(writer);
        line_begin(writer);
        put_text(writer, str_from(name));
        put_text(writer, STR(": "));
    }
    writer->begun = true;
}

static void put_member(struct explain_writer *writer, const char *name)
{
    if (writer->json)
        json_member(writer, str_from(name));
    else
        text_member(writer, name);
}

/* What the terminal would obey is not shown to it. */
static void put_plain(struct explain_writer *writer, struct str text)
{
    for (size_t i = 0; i < text.length; i++)
        put_text(writer,
                 (unsigned char)text.data[i] < 32 || text.data[i] == 127 ? STR("?") : str_slice(text, i, i + 1));
}

static void put_words(struct explain_writer *writer, struct str text)
{
    if (writer->json)
        put_quoted(writer, text);
    else
        put_plain(writer, text);
}

void writer_text(struct explain_writer *writer, const char *name, struct str value)
{
    put_member(writer, name);
    put_words(writer, value);
}

void writer_number(struct explain_writer *writer, const char *name, uint64_t value)
{
    put_member(writer, name);
    if (writer->error == 0)
        writer->error = buffer_printf(writer->out, "%llu", (unsigned long long)value);
}

void writer_field(struct explain_writer *writer, struct str name, struct str value)
{
    if (writer->json) {
        json_member(writer, name);
    } else {
        line_begin(writer);
        put_plain(writer, name);
        put_text(writer, STR(": "));
    }
    put_words(writer, value);
}

void writer_item(struct explain_writer *writer, struct str value)
{
    if (writer->json) {
        json_member(writer, (struct str){NULL, 0});
    } else {
        heading_put(writer);
        line_begin(writer);
        put_text(writer, STR("- "));
    }
    put_words(writer, value);
}

static void put_value(struct explain_writer *writer, const struct conf_node *node)
{
    bool map = node->kind == CONF_MAP;

    if (node->kind == CONF_SCALAR) {
        put_words(writer, node->text);
        return;
    }
    put_text(writer, map ? STR("{") : STR("["));
    for (size_t i = 0; i < node->count; i++) {
        put_text(writer, i ? STR(", ") : STR(""));
        if (map)
            put_words(writer, node->pairs[i].key->text);
        put_text(writer, map ? STR(": ") : STR(""));
        put_value(writer, map ? node->pairs[i].value : node->items[i]);
    }
    put_text(writer, map ? STR("}") : STR("]"));
}

void writer_value(struct explain_writer *writer, const char *name, const struct conf_node *node)
{
    put_member(writer, name);
    put_value(writer, node);
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
