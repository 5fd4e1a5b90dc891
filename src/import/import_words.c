/*
 * Converts words of nginx to YAML: quotes, variables, times, paths.
 */
#include "import/import_scope.h"

#include <stdarg.h>

static struct str or_out_of_memory(struct import *import, struct str text)
{
    import->out_of_memory |= !text.data;
    return text.data ? text : STR("");
}

struct str words_print(struct import *import, const char *format, ...)
{
    struct str text;
    va_list args;

    va_start(args, format);
    text = arena_vprintf(import->arena, format, args);
    va_end(args);
    return or_out_of_memory(import, text);
}

static bool is_word_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* True for a backslash that conf_read_words would read as an escape. */
static bool is_escape(struct str word, size_t at)
{
    return word.data[at] == '\\' && at + 1 < word.length && strchr("\"'\\trn", word.data[at + 1]) &&
           word.data[at + 1];
}

struct str word_quote(struct import *import, struct str word)
{
    bool quoted = str_empty(word) || word.data[0] == '"' || word.data[0] == '\'';
    char *made = arena_alloc(import->arena, 2 * word.length + 3);
    size_t length = 0;

    if (!made)
        return or_out_of_memory(import, (struct str){NULL, 0});
    for (size_t i = 0; i < word.length; i++)
        quoted |= is_word_blank(word.data[i]);
    if (quoted)
        made[length++] = '"';
    for (size_t i = 0; i < word.length; i++) {
        char c = word.data[i];
        const char *control = strchr("\tt\rr\nn", c);

        if (control && c && is_word_blank(c) && c != ' ') {
            made[length++] = '\\';
            c = control[1];
        } else if ((quoted && c == '"') || is_escape(word, i) ||
                   (c == '\\' && quoted && i + 1 == word.length))
            made[length++] = '\\';
        made[length++] = c;
    }
    if (quoted)
        made[length++] = '"';
    return str_of(made, length);
}

/* Joins words of any length to one text. */
struct str words_join(struct import *import, const struct str *words, size_t count)
{
    struct str *parts = arena_zalloc(import->arena, 2 * count + 1, sizeof(*parts));

    if (!parts)
        return or_out_of_memory(import, (struct str){NULL, 0});
    for (size_t i = 0; i < count; i++) {
        parts[2 * i] = word_quote(import, words[i]);
        parts[2 * i + 1] = STR(" ");
    }
    return or_out_of_memory(import, arena_join(import->arena, parts, count ? 2 * count - 1 : 0));
}

static bool name_char(char c)
{
    return (str_lower(c) >= 'a' && str_lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

struct str word_variables(struct import *import, struct str word)
{
    char *made;
    bool inside = false;

    if (str_find(word, '$') < 0)
        return word;
    made = arena_alloc(import->arena, word.length + 1);
    if (!made)
        return or_out_of_memory(import, (struct str){NULL, 0});
    for (size_t i = 0; i < word.length; i++) {
        char c = word.data[i];

        inside = c == '$' || (inside && (name_char(c) || (c == '{' && word.data[i - 1] == '$')));
        made[i] = inside ? str_lower(c) : c;
    }
    return str_of(made, word.length);
}

static bool is_number(struct str word)
{
    for (size_t i = 0; i < word.length; i++) {
        if (word.data[i] < '0' || word.data[i] > '9')
            return false;
    }
    return !str_empty(word);
}

static bool is_break(char c)
{
    return c == '\n' || c == '\r';
}

struct str word_fold(struct import *import, struct str word)
{
    char *folded = arena_alloc(import->arena, word.length + 1);
    size_t length = 0;

    if (!folded) {
        import->out_of_memory = true;
        return STR("");
    }
    for (size_t i = 0; i < word.length;) {
        if (!is_break(word.data[i])) {
            folded[length++] = word.data[i++];
            continue;
        }
        while (length > 0 && (folded[length - 1] == ' ' || folded[length - 1] == '\t'))
            length--;
        while (i < word.length && (is_break(word.data[i]) || word.data[i] == ' ' || word.data[i] == '\t'))
            i++;
        if (length > 0 && i < word.length)
            folded[length++] = ' ';
    }
    return str_of(folded, length);
}

struct str word_time(struct import *import, struct str word)
{
    return is_number(word) && !str_equal(word, STR("0")) ? words_print(import, STR_FMT "s", STR_ARG(word))
                                                      : word;
}

struct str word_option(struct import *import, struct str word)
{
    static const char *const times[] = {
        "fail_timeout", "inactive",         "valid",   "slow_start", "manager_threshold", "manager_sleep",
        "loader_sleep", "loader_threshold", "timeout", "flush"};
    struct str value = word;
    struct str name = str_cut(&value, '=');

    for (size_t i = 0; value.data && i < sizeof(times) / sizeof(times[0]); i++) {
        if (str_equal(name, str_from(times[i])) && is_number(value))
            return words_print(import, STR_FMT "=" STR_FMT, STR_ARG(name), STR_ARG(word_time(import, value)));
    }
    return word;
}

struct str word_path(struct import *import, struct str directory, struct str word)
{
    static const char *const none[] = {"off", "stderr", "stdout"};

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        if (str_equal(word, str_from(none[i])))
            return word;
    }
    if (str_empty(word) || word.data[0] == '/' || word.data[0] == '$' || str_starts(word, STR("syslog:")) ||
        str_starts(word, STR("memory:")))
        return word;
    return words_print(import, STR_FMT "/" STR_FMT, STR_ARG(directory), STR_ARG(word));
}

bool word_has_capture(struct str word)
{
    for (size_t i = 0; i + 1 < word.length; i++) {
        size_t at = i + 1 + (word.data[i + 1] == '{');

        if (word.data[i] == '$' && at < word.length && word.data[at] >= '1' && word.data[at] <= '9')
            return true;
    }
    return false;
}

bool word_has_variable(struct str word, struct str name)
{
    for (size_t i = 0; i < word.length; i++) {
        struct str rest = str_skip(word, i + 1);

        if (word.data[i] != '$')
            continue;
        rest = str_skip(rest, str_starts(rest, STR("{")));
        if (rest.length >= name.length && str_equal_nocase(str_slice(rest, 0, name.length), name) &&
            (rest.length == name.length || !name_char(rest.data[name.length])))
            return true;
    }
    return false;
}
