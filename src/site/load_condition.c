/*
 * Conditions of `when` and `limit_except`, from the text to run-time tests.
 */
#include "site/capture.h"
#include "site/load.h"
#include "site/when.h"

#include <errno.h>

#define HINT STR("write: $name = text, $name ~ regex, -f path, or $name alone; negate with != and !~; join with and")

#define EXCEPT_HINT STR("write: limit_except: {GET POST: {deny: all}}")

struct words {
    struct str *items;
    size_t count;
    size_t next;
};

static struct str next_word(struct words *words)
{
    return words->next < words->count ? words->items[words->next++] : (struct str){NULL, 0};
}

static int report_condition_error(struct conf_reader *reader, const struct conf_node *node, struct str word,
                                  const char *problem)
{
    conf_error(reader->errors, conf_mark_within(node, word.data ? word : node->text, 0), HINT,
               "in the condition \"" STR_FMT "\" %s", STR_ARG(node->text), problem);
    return -EINVAL;
}

static const struct {
    const char *word;
    enum condition_kind kind;
    bool negated;
    bool nocase;
} operators[] =
    {
        {"=", CONDITION_EQUALS, false, false},  {"!=", CONDITION_EQUALS, true, false},
        {"~", CONDITION_MATCHES, false, false}, {"!~", CONDITION_MATCHES, true, false},
        {"~*", CONDITION_MATCHES, false, true}, {"!~*", CONDITION_MATCHES, true, true},
},
  tests[] = {
      {"-f", CONDITION_FILE, false, false},   {"!-f", CONDITION_FILE, true, false},
      {"-d", CONDITION_DIRECTORY, false, false}, {"!-d", CONDITION_DIRECTORY, true, false},
      {"-e", CONDITION_EXISTS, false, false}, {"!-e", CONDITION_EXISTS, true, false},
};

/* Reads "-f path". -EAGAIN: another kind of condition. */
static int read_test(struct conf_reader *reader, const struct conf_node *node, struct words *words,
                     struct condition *out)
{
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        struct str path;

        if (!str_equal(words->items[words->next], str_from(tests[i].word)))
            continue;
        words->next++;
        path = next_word(words);
        if (!path.data)
            return report_condition_error(reader, node, path, "a path is missing");
        out->kind = tests[i].kind;
        out->negated = tests[i].negated;
        return conf_read_template_word(reader, node, path, &out->value);
    }
    return -EAGAIN;
}

/* Reads "= text", "~ regex" or nothing after the value. */
static int read_operator(struct conf_reader *reader, const struct conf_node *node, struct words *words,
                         struct condition *out)
{
    struct str word = words->next < words->count ? words->items[words->next] : STR("and");
    struct str operand;

    if (str_equal(word, STR("and")))
        return 0;
    words->next++;
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (!str_equal(word, str_from(operators[i].word)))
            continue;
        out->kind = operators[i].kind;
        out->negated = operators[i].negated;
        operand = next_word(words);
        if (!operand.data)
            return report_condition_error(reader, node, word, "a value is missing after the operator");
        if (out->kind == CONDITION_MATCHES)
            return capture_read(reader, node, operand, operators[i].nocase, &out->pattern);
        return conf_read_template_word(reader, node, operand, &out->operand);
    }
    return report_condition_error(reader, node, word, "expected a comparison operator or \"and\"");
}

static int read_condition(struct conf_reader *reader, const struct conf_node *node, struct words *words,
                          struct condition *out)
{
    int error = read_test(reader, node, words, out);
    struct str value;

    if (error != -EAGAIN)
        return error;
    value = next_word(words);
    if (str_find(value, '$') < 0)
        return report_condition_error(reader, node, value, "the condition contains no variable");
    error = conf_read_template_word(reader, node, value, &out->value);
    return error < 0 ? error : read_operator(reader, node, words, out);
}

/* Removes nginx's parentheses around the whole condition. */
static struct str without_parentheses(struct str text)
{
    text = str_trim(text);
    if (str_starts(text, STR("(")) && str_ends(text, STR(")")))
        text = str_slice(text, 1, text.length - 1);
    return str_trim(text);
}

int load_conditions_read(struct conf_reader *reader, const struct conf_node *key, struct when_block *when)
{
    struct conf_node node = conf_word_node(key, without_parentheses(key->text));
    struct condition *conditions;
    struct conf_words read;
    struct words words;
    int error = conf_read_words(reader, &node, &read);

    if (error < 0)
        return error;
    words = (struct words){.items = read.items, .count = read.count};
    conditions = arena_zalloc(reader->arena, read.count + 1, sizeof(*conditions));
    if (!conditions)
        return -ENOMEM;
    when->conditions = conditions;
    do {
        if (words.next == words.count)
            return report_condition_error(reader, key, (struct str){NULL, 0}, "a part is missing");
        error = read_condition(reader, key, &words, &conditions[when->count++]);
        if (error == 0 && words.next < words.count && !str_equal(words.items[words.next], STR("and")))
            error = report_condition_error(reader, key, words.items[words.next], "two parts are not joined by \"and\"");
    } while (error == 0 && words.next++ < words.count);
    return error;
}

static bool is_method(struct str word)
{
    for (size_t i = 0; i < word.length; i++) {
        if ((word.data[i] < 'A' || word.data[i] > 'Z') && word.data[i] != '-' && word.data[i] != '_')
            return false;
    }
    return !str_empty(word);
}

int load_methods_read(struct conf_reader *reader, const struct conf_node *key, struct when_block *when)
{
    struct condition *condition = arena_zalloc(reader->arena, 1, sizeof(*condition));
    struct conf_words words;
    int error = condition ? conf_read_words(reader, key, &words) : -ENOMEM;

    if (error < 0)
        return error;
    *condition = (struct condition){.kind = CONDITION_AMONG, .negated = true};
    condition->among.items = arena_zalloc(reader->arena, words.count + 1, sizeof(struct str));
    if (!condition->among.items)
        return -ENOMEM;
    for (size_t i = 0; i < words.count; i++) {
        if (!is_method(words.items[i])) {
            conf_error(reader->errors, key->mark, EXCEPT_HINT, "limit_except: \"" STR_FMT "\" is not a method",
                       STR_ARG(words.items[i]));
            return -EINVAL;
        }
        condition->among.items[condition->among.count++] = words.items[i];
    }
    for (size_t i = 0; i < words.count; i++) {
        if (str_equal(words.items[i], STR("GET")) && condition->among.count == words.count)
            condition->among.items[condition->among.count++] = STR("HEAD");
    }
    if (words.count == 0) {
        conf_error(reader->errors, key->mark, EXCEPT_HINT, "limit_except has no method");
        return -EINVAL;
    }
    when->conditions = condition;
    when->count = 1;
    when->methods = true;
    return conf_read_template_word(reader, key, STR("$request_method"), &condition->value);
}
