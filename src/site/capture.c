/*
 * Regular expressions, and the variables of their groups.
 */
#include "site/capture.h"

#include "site/user_variables.h"

#include <errno.h>

struct named_group {
    const struct user_variable *variable;
    unsigned number;
};

struct capture {
    struct capture *next; /* next in among->captures */
    const struct user_variables *among;
    struct str text;
    struct regex *regex;
    struct named_group *named;
    unsigned named_count;
    unsigned groups; /* groups that can be referenced by number, including the whole match; 0: nothing is captured */
};

static int read_names(struct conf_reader *reader, const struct conf_node *node, struct capture *capture)
{
    struct str name;
    unsigned number;

    while (regex_name(capture->regex, capture->named_count, &name, &number))
        capture->named_count++;
    capture->named = arena_zalloc(reader->arena, capture->named_count + 1, sizeof(*capture->named));
    if (!capture->named)
        return -ENOMEM;
    for (unsigned i = 0; regex_name(capture->regex, i, &name, &number); i++) {
        capture->named[i] = (struct named_group){user_variable_find(reader->user_variables, name), number};
        if (!capture->named[i].variable) {
            conf_error(reader->errors, conf_mark_within(node, capture->text, 0), STR("use another name"),
                       "a group cannot be named \"" STR_FMT "\": $" STR_FMT " is a built-in variable",
                       STR_ARG(name), STR_ARG(name));
            return -EINVAL;
        }
    }
    return 0;
}

int capture_read(struct conf_reader *reader, const struct conf_node *node, struct str text, bool nocase,
                 const struct capture **out_capture)
{
    struct capture *capture = arena_zalloc(reader->arena, 1, sizeof(*capture));
    char message[REGEX_MESSAGE];
    size_t at = 0;
    int error;

    if (!capture)
        return -ENOMEM;
    error = regex_compile(text, nocase, &capture->regex, &at, message);
    if (error == -EINVAL)
        conf_error(reader->errors, conf_mark_within(node, text, at),
                   STR("a backslash makes the next character literal; quote the whole in ''"),
                   "the regular expression \"" STR_FMT "\" is invalid: %s", STR_ARG(text), message);
    if (error < 0)
        return error;
    capture->text = text;
    capture->among = reader->user_variables;
    capture->next = reader->user_variables->captures;
    reader->user_variables->captures = capture;
    capture->groups = regex_group_count(capture->regex);
    if (capture->groups)
        capture->groups = capture->groups < REGEX_GROUPS ? capture->groups + 1 : REGEX_GROUPS;
    *out_capture = capture;
    return read_names(reader, node, capture);
}

void captures_finish(struct user_variables *own)
{
    for (struct capture *capture = own->captures; capture; capture = capture->next)
        regex_destroy(capture->regex);
    own->captures = NULL;
}

static int store_groups(const struct capture *capture, const void *subject, struct str text)
{
    struct user_variable_values *own = capture->among->subject->values(subject);

    own->groups = arena_zalloc(own->arena, REGEX_GROUPS, sizeof(*own->groups));
    if (!own->groups)
        return -ENOMEM;
    for (unsigned i = 0; i < capture->groups; i++)
        own->groups[i] = regex_group(capture->regex, text, i);
    for (unsigned i = 0; i < capture->named_count; i++) {
        int error = user_variable_set(subject, capture->named[i].variable,
                                      regex_group(capture->regex, text, capture->named[i].number));

        if (error < 0)
            return error;
    }
    return 1;
}

static void log_match_error(const struct capture *capture, const void *subject, struct str text, int error)
{
    const struct user_variable_subject *own = capture->among->subject;
    struct str line = arena_printf(own->values(subject)->arena,
                                   "the regular expression \"" STR_FMT "\" cannot be matched with \"" STR_FMT
                                   "\": %s",
                                   STR_ARG(capture->text), STR_ARG(text),
                                   error == -E2BIG ? "it needs too many steps" : strerror(-error));

    own->log(subject, line.data ? line.data : "out of memory while a regular expression was matched");
}

int capture_match(const struct capture *capture, const void *subject, struct str text)
{
    int result = regex_match(capture->regex, text);

    if (result == 1 && capture->groups)
        result = store_groups(capture, subject, text);
    if (result < 0)
        log_match_error(capture, subject, text, result);
    return result;
}

const struct regex *capture_regex(const struct capture *capture)
{
    return capture->regex;
}

struct str capture_text(const struct capture *capture)
{
    return capture->text;
}
