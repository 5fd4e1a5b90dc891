/*
 * Reads values of several words: lists, scalars split as nginx splits a line, choices, and lists of templates.
 */
#include "conf/conf_value.h"

#include <errno.h>

static bool is_conf_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* nginx's escapes; other backslashes are kept for regular expressions. */
static char unescape_character(char c)
{
    static const char pairs[] = "\"\"''\\\\t\tn\nr\r";

    for (size_t i = 0; i + 1 < sizeof(pairs); i += 2) {
        if (pairs[i] == c)
            return pairs[i + 1];
    }
    return '\0';
}

/* Moves one word from the start of *text into `out`. -EINVAL: an unclosed quote, or text directly after one. */
static int next_word(struct str *text, char *out, size_t *out_length)
{
    char quote = text->data[0] == '"' || text->data[0] == '\'' ? text->data[0] : '\0';
    size_t at = quote ? 1 : 0;
    size_t length = 0;

    for (; at < text->length; at++) {
        char c = text->data[at];

        if (quote ? c == quote : is_conf_blank(c))
            break;
        if (c == '\\' && at + 1 < text->length && unescape_character(text->data[at + 1]))
            c = unescape_character(text->data[++at]);
        out[length++] = c;
    }
    if (quote && (at == text->length || (at + 1 < text->length && !is_conf_blank(text->data[at + 1]))))
        return -EINVAL;
    *text = str_skip(*text, quote ? at + 1 : at);
    *out_length = length;
    return 0;
}

static int words_add(struct buffer *words, struct str word)
{
    return buffer_append(words, str_of((const char *)&word, sizeof(word)));
}

static int scalar_split(struct conf_reader *reader, const struct conf_node *node, struct buffer *words)
{
    struct str text = node->text;
    char *memory = arena_alloc(reader->arena, text.length);

    if (!memory)
        return -ENOMEM;
    for (;;) {
        size_t length = 0;
        int error;

        while (text.length && is_conf_blank(text.data[0]))
            text = str_skip(text, 1);
        if (!text.length)
            return 0;
        error = next_word(&text, memory, &length);
        if (error == -EINVAL)
            conf_error(reader->errors, node->mark,
                       STR("quotes enclose a whole word; write \\\" for a quote"),
                       "a quote is not closed, or is followed by text");
        if (error == 0)
            error = words_add(words, str_of(memory, length));
        if (error < 0)
            return error == -EINVAL ? -EINVAL : -ENOMEM;
        memory += length;
    }
}

static int list_words(struct conf_reader *reader, const struct conf_node *node, struct buffer *words)
{
    for (size_t i = 0; i < node->count; i++) {
        int error = value_text(reader, node->items[i], "a list of words");

        if (error == 0)
            error = words_add(words, node->items[i]->text) < 0 ? -ENOMEM : 0;
        if (error < 0)
            return error;
    }
    return 0;
}

struct conf_node conf_word_node(const struct conf_node *node, struct str word)
{
    struct conf_node made = *node;

    made.kind = CONF_SCALAR;
    made.text = word;
    made.absent = false;
    made.items = NULL;
    made.pairs = NULL;
    made.count = 0;
    return made;
}

int conf_read_words(struct conf_reader *reader, const struct conf_node *node, struct conf_words *out_words)
{
    struct buffer words = {0};
    struct str *items = NULL;
    int error = node->kind == CONF_LIST ? 0 : value_text(reader, node, "words");

    if (error == 0)
        error =
            node->kind == CONF_LIST ? list_words(reader, node, &words) : scalar_split(reader, node, &words);
    if (error == 0) {
        items = arena_alloc(reader->arena, words.length);
        error = items ? 0 : -ENOMEM;
    }
    if (error == 0) {
        if (words.length)
            memcpy(items, words.data, words.length);
        *out_words = (struct conf_words){items, words.length / sizeof(*items)};
    }
    for (size_t i = 0; error == 0 && i < out_words->count; i++)
        error = value_check_line(reader, node->kind == CONF_LIST ? node->items[i] : node, out_words->items[i]);
    buffer_finish(&words);
    return error;
}

struct conf_mark conf_mark_within(const struct conf_node *node, struct str word, size_t at)
{
    const struct conf_file *file = node->mark.file;
    struct conf_mark mark = node->mark;
    ssize_t word_at = str_search(node->text, word);
    struct str line;
    ssize_t start;

    if (!file || mark.line == 0 || mark.line > file->line_count || word_at < 0)
        return mark;
    line = str_slice(file->text, file->lines[mark.line - 1],
                     mark.line < file->line_count ? file->lines[mark.line] : file->text.length);
    start = str_search(line, node->text);
    if (start < 0 || str_search(str_skip(line, (size_t)start + 1), node->text) >= 0)
        return mark;
    mark.column = 1;
    for (size_t i = 0; i < (size_t)start + (size_t)word_at + at; i++)
        mark.column += ((unsigned char)line.data[i] & 0xC0) != 0x80;
    return mark;
}

int conf_read_template_word(struct conf_reader *reader, const struct conf_node *node, struct str word,
                            const struct template **out_template)
{
    struct str text = {NULL, 0};
    size_t at = 0;
    int error = value_check_line(reader, node, word);

    if (error < 0)
        return error;
    error = template_compile(reader->arena, word, reader->variables, out_template, &at, &text);
    if (error == -EINVAL)
        conf_error(reader->errors, conf_mark_within(node, word, at),
                   STR("a dollar sign itself is written $$; the environment is read as ${UPPER_CASE}"),
                   STR_FMT, STR_ARG(text));
    return error;
}

int conf_read_template(struct conf_reader *reader, const struct conf_node *node,
                       const struct template **out_template)
{
    int error = value_text(reader, node, "a text");

    return error < 0 ? error : conf_read_template_word(reader, node, node->text, out_template);
}

int conf_read_size_template(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    const struct template **into = out;
    uint64_t bytes;
    int error = conf_read_template(reader, node, into);

    if (error < 0 || !template_constant(*into))
        return error;
    return conf_read_size(reader, node, &bytes);
}

int choice_find(const char *const *choices, struct str word)
{
    bool on;

    for (int i = 0; choices[i]; i++) {
        if (str_equal(word, str_from(choices[i])))
            return i;
    }
    if (conf_switch_parse(word, &on) < 0)
        return -1;
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], on ? "on" : "off") == 0)
            return i;
    }
    return -1;
}

int choice_reject(struct conf_reader *reader, const struct conf_node *node, const char *const *choices,
                  struct str word)
{
    const char *suggestion = NULL;
    size_t best = word.length / 3 + 1;
    struct str all = STR("");

    for (size_t i = 0; choices[i]; i++) {
        size_t distance = str_distance(word, str_from(choices[i]));

        if (choices[i][0] == '\0') /* the value of a word that is not given */
            continue;

        if (distance <= best && (!suggestion || distance < best)) {
            suggestion = choices[i];
            best = distance;
        }
        all = conf_hint(reader->errors, STR_FMT "%s%s", STR_ARG(all), all.length ? ", " : "", choices[i]);
    }
    conf_error(
        reader->errors, node->mark,
        suggestion ? conf_hint(reader->errors, "did you mean %s? The choice is " STR_FMT, suggestion, STR_ARG(all))
                : conf_hint(reader->errors, "the choice is " STR_FMT, STR_ARG(all)),
        "'%s' cannot be '" STR_FMT "'", reader->directive ? reader->directive->name : "this key",
        STR_ARG(word));
    return -EINVAL;
}

int conf_read_choice(struct conf_reader *reader, const struct conf_node *node, const char *const *choices,
                     int *out_index)
{
    int error = value_scalar(reader, node, "a word");
    int found;

    if (error < 0)
        return error;
    found = choice_find(choices, node->text);
    if (found < 0)
        return choice_reject(reader, node, choices, node->text);
    *out_index = found;
    return 0;
}
