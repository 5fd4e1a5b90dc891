/*
 * Lines for people: a member a line, what is short beside its name, places behind it in brackets; lists without items
 * are left out. JSON has all of it, each member under its name.
 */
#include "explain/explain_tell.h"

#include "conf/template.h"

static void put_text(struct tell *tell, struct str text)
{
    if (tell->error == 0)
        tell->error = buffer_append(tell->out, text);
}

static void put_quoted(struct tell *tell, struct str text)
{
    put_text(tell, STR("\""));
    if (tell->error == 0)
        tell->error = template_escape_json(tell->out, text);
    put_text(tell, STR("\""));
}

static void line_begin(struct tell *tell)
{
    put_text(tell, STR("\n"));
    if (tell->error == 0)
        tell->error = buffer_printf(tell->out, "%*s", (int)(2 * tell->depth), "");
}

/* In JSON the comma, the line and the name before a value. */
static void json_member(struct tell *tell, struct str name)
{
    if (tell->begun)
        put_text(tell, STR(","));
    tell->begun = true;
    line_begin(tell);
    if (name.data) {
        put_quoted(tell, name);
        put_text(tell, STR(": "));
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
static void heading_put(struct tell *tell)
{
    if (!tell->heading)
        return;
    tell->depth--;
    line_begin(tell);
    put_text(tell, str_from(tell->heading));
    put_text(tell, STR(":"));
    tell->depth++;
    tell->heading = NULL;
}

void tell_open(struct tell *tell, struct str url)
{
    put_text(tell, tell->json ? STR("{") : url);
    tell->depth = tell->json;
    if (tell->json)
        tell_text(tell, "url", url);
    else
        put_text(tell, STR("\n"));
}

void tell_close(struct tell *tell)
{
    put_text(tell, tell->json ? STR("\n}\n") : STR("\n"));
}

void tell_begin(struct tell *tell, const char *name)
{
    if (tell->json) {
        json_member(tell, name ? str_from(name) : (struct str){NULL, 0});
        put_text(tell, STR("{"));
    } else {
        heading_put(tell);
        line_begin(tell);
        put_text(tell, name ? str_from(name) : STR("-"));
        put_text(tell, name ? STR(":") : STR(""));
    }
    tell->depth++;
    tell->begun = false;
}

static void level_end(struct tell *tell, struct str bracket)
{
    tell->depth--;
    tell->heading = NULL;
    if (tell->json && tell->begun)
        line_begin(tell);
    if (tell->json)
        put_text(tell, bracket);
    tell->begun = true;
}

void tell_end(struct tell *tell)
{
    level_end(tell, STR("}"));
}

void tell_list(struct tell *tell, const char *name)
{
    if (tell->json) {
        json_member(tell, str_from(name));
        put_text(tell, STR("["));
    }
    tell->depth++;
    tell->heading = tell->json ? NULL : name;
    tell->begun = false;
}

void tell_list_end(struct tell *tell)
{
    level_end(tell, STR("]"));
}

/* In text: before a value. */
static void text_member(struct tell *tell, const char *name)
{
    if (!tell->begun && is_listed(name, titles)) {
        put_text(tell, STR(" "));
    } else if (tell->begun && is_listed(name, subtitles)) {
        put_text(tell, STR(": "));
    } else {
        heading_put(tell);
        line_begin(tell);
        put_text(tell, str_from(name));
        put_text(tell, STR(": "));
    }
    tell->begun = true;
}

static void put_member(struct tell *tell, const char *name)
{
    if (tell->json)
        json_member(tell, str_from(name));
    else
        text_member(tell, name);
}

/* What the terminal would obey is not shown to it. */
static void put_plain(struct tell *tell, struct str text)
{
    for (size_t i = 0; i < text.length; i++)
        put_text(tell,
                 (unsigned char)text.data[i] < 32 || text.data[i] == 127 ? STR("?") : str_slice(text, i, i + 1));
}

static void put_words(struct tell *tell, struct str text)
{
    if (tell->json)
        put_quoted(tell, text);
    else
        put_plain(tell, text);
}

void tell_text(struct tell *tell, const char *name, struct str value)
{
    put_member(tell, name);
    put_words(tell, value);
}

void tell_number(struct tell *tell, const char *name, uint64_t value)
{
    put_member(tell, name);
    if (tell->error == 0)
        tell->error = buffer_printf(tell->out, "%llu", (unsigned long long)value);
}

void tell_field(struct tell *tell, struct str name, struct str value)
{
    if (tell->json) {
        json_member(tell, name);
    } else {
        line_begin(tell);
        put_plain(tell, name);
        put_text(tell, STR(": "));
    }
    put_words(tell, value);
}

void tell_item(struct tell *tell, struct str value)
{
    if (tell->json) {
        json_member(tell, (struct str){NULL, 0});
    } else {
        heading_put(tell);
        line_begin(tell);
        put_text(tell, STR("- "));
    }
    put_words(tell, value);
}

static void put_value(struct tell *tell, const struct conf_node *node)
{
    bool map = node->kind == CONF_MAP;

    if (node->kind == CONF_SCALAR) {
        put_words(tell, node->text);
        return;
    }
    put_text(tell, map ? STR("{") : STR("["));
    for (size_t i = 0; i < node->count; i++) {
        put_text(tell, i ? STR(", ") : STR(""));
        if (map)
            put_words(tell, node->pairs[i].key->text);
        put_text(tell, map ? STR(": ") : STR(""));
        put_value(tell, map ? node->pairs[i].value : node->items[i]);
    }
    put_text(tell, map ? STR("}") : STR("]"));
}

void tell_value(struct tell *tell, const char *name, const struct conf_node *node)
{
    put_member(tell, name);
    put_value(tell, node);
}

void tell_mark(struct tell *tell, struct conf_mark mark)
{
    if (!mark.file || tell->error < 0)
        return;
    if (tell->json) {
        tell_text(tell, "file", mark.file->path);
        tell_number(tell, "line", mark.line);
        tell_number(tell, "column", mark.column);
    } else {
        tell->error = buffer_printf(tell->out, "  (" STR_FMT ":%u)", STR_ARG(mark.file->path), mark.line);
    }
}
