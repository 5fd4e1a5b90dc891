/*
 * Regular expressions and the variables that their groups become.
 */
#include "site/pattern.h"

#include "site/user_variables.h"

#include <errno.h>

struct named_group {
    const struct user_variable *variable;
    unsigned number;
};

struct pattern {
    struct pattern *next; /* in among->patterns */
    const struct user_variables *among;
    struct str text;
    struct regex *regex;
    struct named_group *named;
    unsigned named_count;
    unsigned groups; /* that can be asked for by number, the whole included; 0: nothing is captured */
};

static int read_names(struct conf_reader *reader, const struct conf_node *node, struct pattern *pattern)
{
    struct str name;
    unsigned number;

    while (regex_name(pattern->regex, pattern->named_count, &name, &number))
        pattern->named_count++;
    pattern->named = arena_zalloc(reader->arena, pattern->named_count + 1, sizeof(*pattern->named));
    if (!pattern->named)
        return -ENOMEM;
    for (unsigned i = 0; regex_name(pattern->regex, i, &name, &number); i++) {
        pattern->named[i] = (struct named_group){user_variable_find(reader->user_variables, name), number};
        if (!pattern->named[i].variable) {
            conf_error(reader->errors, conf_mark_within(node, pattern->text, 0), STR("take another name"),
                       "a group cannot be named \"" STR_FMT "\": $" STR_FMT " is the server's own",
                       STR_ARG(name), STR_ARG(name));
            return -EINVAL;
        }
    }
    return 0;
}

int pattern_read(struct conf_reader *reader, const struct conf_node *node, struct str text, bool nocase,
                 const struct pattern **out_pattern)
{
    struct pattern *pattern = arena_zalloc(reader->arena, 1, sizeof(*pattern));
    char said[REGEX_SAID];
    size_t at = 0;
    int error;

    if (!pattern)
        return -ENOMEM;
    error = regex_compile(text, nocase, &pattern->regex, &at, said);
    if (error == -EINVAL)
        conf_error(reader->errors, conf_mark_within(node, text, at),
                   STR("a backslash before a sign takes it as it is; quote the whole in ''"),
                   "the regular expression \"" STR_FMT "\" is wrong here: %s", STR_ARG(text), said);
    if (error < 0)
        return error;
    pattern->text = text;
    pattern->among = reader->user_variables;
    pattern->next = reader->user_variables->patterns;
    reader->user_variables->patterns = pattern;
    pattern->groups = regex_group_count(pattern->regex);
    if (pattern->groups)
        pattern->groups = pattern->groups < REGEX_GROUPS ? pattern->groups + 1 : REGEX_GROUPS;
    *out_pattern = pattern;
    return read_names(reader, node, pattern);
}

void patterns_finish(struct user_variables *own)
{
    for (struct pattern *pattern = own->patterns; pattern; pattern = pattern->next)
        regex_destroy(pattern->regex);
    own->patterns = NULL;
}

static int capture(const struct pattern *pattern, const void *subject, struct str text)
{
    struct user_variable_values *own = pattern->among->subject->values(subject);

    own->groups = arena_zalloc(own->arena, REGEX_GROUPS, sizeof(*own->groups));
    if (!own->groups)
        return -ENOMEM;
    for (unsigned i = 0; i < pattern->groups; i++)
        own->groups[i] = regex_group(pattern->regex, text, i);
    for (unsigned i = 0; i < pattern->named_count; i++) {
        int error = user_variable_set(subject, pattern->named[i].variable,
                                      regex_group(pattern->regex, text, pattern->named[i].number));

        if (error < 0)
            return error;
    }
    return 1;
}

static void say(const struct pattern *pattern, const void *subject, struct str text, int error)
{
    const struct user_variable_subject *own = pattern->among->subject;
    struct str line = arena_printf(own->values(subject)->arena,
                                   "the regular expression \"" STR_FMT "\" cannot be matched with \"" STR_FMT
                                   "\": %s",
                                   STR_ARG(pattern->text), STR_ARG(text),
                                   error == -E2BIG ? "it takes too many steps" : strerror(-error));

    own->log(subject, line.data ? line.data : "out of memory while a regular expression was matched");
}

int pattern_match(const struct pattern *pattern, const void *subject, struct str text)
{
    int result = regex_match(pattern->regex, text);

    if (result == 1 && pattern->groups)
        result = capture(pattern, subject, text);
    if (result < 0)
        say(pattern, subject, text, result);
    return result;
}

const struct regex *pattern_regex(const struct pattern *pattern)
{
    return pattern->regex;
}

struct str pattern_text(const struct pattern *pattern)
{
    return pattern->text;
}
