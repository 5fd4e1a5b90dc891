/*
 * nginx's flags: one table describes all of them; the parser contains no flag names. Also formats the error messages of
 * all options.
 */
#include "command/options_parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A flag selects a command, sets a switch, or has a text as its value. */
struct flag {
    char letter;
    enum { FLAG_COMMAND, FLAG_SWITCH, FLAG_TEXT } kind;
    enum command command;
    size_t offset;
    const char *value; /* name of the value, for the error message if it is missing */
};

#define FIELD(name) offsetof(struct options, name)

static const struct flag flags[] = {
    {'c', FLAG_TEXT, COMMAND_RUN, FIELD(conf), "a file name"},
    {'p', FLAG_TEXT, COMMAND_RUN, FIELD(prefix), "a directory"},
    {'e', FLAG_TEXT, COMMAND_RUN, FIELD(error_log), "a file name or \"stderr\""},
    {'g', FLAG_TEXT, COMMAND_RUN, FIELD(overlay), "directives"},
    {'s', FLAG_TEXT, COMMAND_SIGNAL, FIELD(signal), "a signal name: stop, quit, reopen, reload or upgrade"},
    {'q', FLAG_SWITCH, COMMAND_RUN, FIELD(quiet), NULL},
    {'t', FLAG_COMMAND, COMMAND_TEST, 0, NULL},
    {'T', FLAG_COMMAND, COMMAND_TEST_PRINT, 0, NULL},
    {'v', FLAG_COMMAND, COMMAND_VERSION, 0, NULL},
    {'V', FLAG_COMMAND, COMMAND_BUILD, 0, NULL},
    {'h', FLAG_COMMAND, COMMAND_USAGE, 0, NULL},
    {'?', FLAG_COMMAND, COMMAND_USAGE, 0, NULL},
};

#define FLAG_COUNT (sizeof(flags) / sizeof(flags[0]))

static const char *const signal_names[] = {"stop", "quit", "reopen", "reload", "upgrade"};

int options_fail(struct parse *parse, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(parse->error, parse->error_size, format, args);
    va_end(args);
    return -EINVAL;
}

static const struct flag *find_flag(char letter)
{
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if (flags[i].letter == letter)
            return &flags[i];
    }
    return NULL;
}

static int choose_command(struct parse *parse, const struct flag *flag)
{
    struct options *options = parse->options;

    /* -h overrides all others, and -T overrides -t; two different commands are an error */
    if (options->command == COMMAND_USAGE || flag->command == COMMAND_USAGE) {
        options->command = COMMAND_USAGE;
        return 0;
    }
    if (options->command == COMMAND_TEST_PRINT && flag->command == COMMAND_TEST)
        return 0;
    if (options->command != COMMAND_RUN && options->command != flag->command &&
        !(options->command == COMMAND_TEST && flag->command == COMMAND_TEST_PRINT))
        return options_fail(parse, "option \"-%c\" cannot be combined with another command", flag->letter);
    options->command = flag->command;
    return 0;
}

static int check_signal(struct parse *parse)
{
    for (size_t i = 0; i < sizeof(signal_names) / sizeof(signal_names[0]); i++) {
        if (strcmp(parse->options->signal, signal_names[i]) == 0)
            return 0;
    }
    return options_fail(parse, "invalid option: \"-s %s\": it takes stop, quit, reopen, reload or upgrade",
                parse->options->signal);
}

/* The value of a text flag is the rest of the word or the next word. */
static int parse_flag_value(struct parse *parse, const struct flag *flag, const char *rest)
{
    const char *value = rest;

    if (!*value) {
        if (parse->at + 1 >= parse->argc || !*parse->argv[parse->at + 1])
            return options_fail(parse, "option \"-%c\" requires %s", flag->letter, flag->value);
        value = parse->argv[++parse->at];
    }
    memcpy((char *)parse->options + flag->offset, &value, sizeof(value));
    if (flag->command == COMMAND_RUN)
        return 0;
    int result = choose_command(parse, flag);
    return result < 0 ? result : check_signal(parse);
}

int options_flags(struct parse *parse, const char *letters)
{
    for (; *letters; letters++) {
        const struct flag *flag = find_flag(*letters);
        int result = 0;

        if (!flag)
            return options_fail(parse, "invalid option: \"-%c\"", *letters);
        switch (flag->kind) {
        case FLAG_TEXT:
            return parse_flag_value(parse, flag, letters + 1);
        case FLAG_SWITCH:
            *(bool *)((char *)parse->options + flag->offset) = true;
            break;
        case FLAG_COMMAND:
            result = choose_command(parse, flag);
            break;
        }
        if (result < 0)
            return result;
    }
    return 0;
}
