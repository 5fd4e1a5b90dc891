/*
 * Parses the arguments of the subcommands serve, docs, doctor, schema, help and import.
 */
#include "command/options_parse.h"

#include "base/limits.h"

#include <stddef.h>
#include <string.h>

#define FIELD(name) offsetof(struct options, name)

static int parse_port_option(struct parse *parse, const char *text)
{
    uint64_t port;

    if (str_to_u64(str_from(text), &port) < 0 || port == 0 || port > 65535)
        return options_fail(parse, "invalid port \"%s\": it must be a number from 1 to 65535", text);
    parse->options->port = (unsigned)port;
    return 0;
}

/* Options of serve: switches, and texts as "--name TEXT" or "--name=TEXT". */
static const struct serve_option {
    const char *name;
    size_t offset;
    const char *value; /* name of the value, for the error message if it is missing; NULL: a switch */
} serve_options[] = {
    {"--spa", FIELD(spa), NULL},
    {"--autoindex", FIELD(autoindex), NULL},
    {"--open-to-network", FIELD(open_to_network), NULL},
    {"--cert", FIELD(certificate), "a file name"},
    {"--key", FIELD(key), "a file name"},
    {"--acme", FIELD(acme), "a DNS name"},
    {"--acme-directory", FIELD(acme_directory), "a URL"},
    {"--port", 0, "a number"},
};

static int serve_text(struct parse *parse, const struct serve_option *option, const char *value)
{
    if (!value && parse->at + 1 < parse->argc)
        value = parse->argv[++parse->at];
    if (!value || !*value)
        return options_fail(parse, "option \"%s\" requires %s", option->name, option->value);
    if (option->offset == 0)
        return parse_port_option(parse, value);
    memcpy((char *)parse->options + option->offset, &value, sizeof(value));
    return 0;
}

static int serve_option(struct parse *parse, const char *argument)
{
    size_t length = strcspn(argument, "=");

    for (size_t i = 0; i < sizeof(serve_options) / sizeof(serve_options[0]); i++) {
        const struct serve_option *option = &serve_options[i];

        if (strlen(option->name) != length || strncmp(option->name, argument, length) != 0)
            continue;
        if (option->value)
            return serve_text(parse, option, argument[length] ? argument + length + 1 : NULL);
        if (argument[length])
            return options_fail(parse, "option \"%s\" takes no value", option->name);
        *(bool *)((char *)parse->options + option->offset) = true;
        return 0;
    }
    return options_fail(parse, "invalid option of serve: \"%s\"", argument);
}

int serve_argument(struct parse *parse, const char *argument)
{
    /* After "--" a directory may begin with a dash. */
    if (strcmp(argument, "--") == 0 && parse->at + 1 < parse->argc)
        argument = parse->argv[++parse->at];
    else if (argument[0] == '-')
        return serve_option(parse, argument);
    if (parse->options->directory)
        return options_fail(parse, "serve takes one directory, and \"%s\" is a second one", argument);
    if (!*argument)
        return options_fail(parse, "the directory to serve has an empty name");
    parse->options->directory = argument;
    return 0;
}

int docs_argument(struct parse *parse, const char *argument)
{
    if (argument[0] == '-')
        return options_fail(parse, "invalid option of docs: \"%s\"", argument);
    if (parse->options->port > 0)
        return options_fail(parse, "docs takes one port, and \"%s\" is a second one", argument);
    return parse_port_option(parse, argument);
}

/* The value is optional: the next argument, unless it is an option. */
static int report_option(struct parse *parse, const char *value)
{
    const char *next = parse->at + 1 < parse->argc ? parse->argv[parse->at + 1] : NULL;

    parse->options->report = true;
    if (!value && next && (next[0] != '-' || !next[1])) {
        value = next;
        parse->at++;
    }
    if (value && !*value)
        return options_fail(parse, "the report has an empty file name");
    parse->options->output = value;
    return 0;
}

static int seconds_option(struct parse *parse, const char *value)
{
    uint64_t seconds;

    if (!value && parse->at + 1 < parse->argc)
        value = parse->argv[++parse->at];
    if (!value || str_to_u64(str_from(value), &seconds) < 0 || seconds == 0 || seconds > LIMIT_BENCHMARK_SECONDS)
        return options_fail(parse, "option \"--seconds\" requires a number from 1 to %d", LIMIT_BENCHMARK_SECONDS);
    parse->options->seconds = (unsigned)seconds;
    return 0;
}

/* Called after the last argument. */
static int check_doctor(struct parse *parse)
{
    const struct options *options = parse->options;

    if (options->report && (options->json || options->conf))
        return options_fail(parse, "a report is Markdown without names of certificates: \"--report\" excludes \"%s\"",
                            options->json ? "--json" : "-c");
    if (!options->report && (options->seconds || options->no_benchmark))
        return options_fail(parse, "option \"%s\" requires \"--report\"",
                            options->seconds ? "--seconds" : "--no-benchmark");
    if (options->seconds && options->no_benchmark)
        return options_fail(parse, "\"--no-benchmark\" excludes \"--seconds\"");
    return 0;
}

static int doctor_option(struct parse *parse, const char *argument)
{
    const char *value = strchr(argument, '=');
    struct str name = str_of(argument, value ? (size_t)(value - argument) : strlen(argument));

    if (str_equal(name, STR("--report")))
        return report_option(parse, value ? value + 1 : NULL);
    if (str_equal(name, STR("--seconds")))
        return seconds_option(parse, value ? value + 1 : NULL);
    if (strcmp(argument, "--json") == 0)
        parse->options->json = true;
    else if (strcmp(argument, "--no-benchmark") == 0)
        parse->options->no_benchmark = true;
    else
        return options_fail(parse, "invalid argument of doctor: \"%s\"", argument);
    return 0;
}

int doctor_argument(struct parse *parse, const char *argument)
{
    int result =
        strncmp(argument, "-c", 2) == 0 ? options_flags(parse, argument + 1) : doctor_option(parse, argument);

    return result == 0 && parse->at + 1 == parse->argc ? check_doctor(parse) : result;
}

int schema_argument(struct parse *parse, const char *argument)
{
    return options_fail(parse, "schema takes no argument (\"%s\")", argument);
}

int help_argument(struct parse *parse, const char *argument)
{
    if (parse->options->directive)
        return options_fail(parse, "help takes one directive, and \"%s\" is a second one", argument);
    parse->options->directive = argument;
    return 0;
}

/* "-o FILE", "-oFILE": the value is the rest of the word or the next word. */
static int import_text(struct parse *parse, const char *argument, const char **out_text)
{
    const char *value = argument + 2;

    if (!*value && parse->at + 1 < parse->argc)
        value = parse->argv[++parse->at];
    if (!*value)
        return options_fail(parse, "option \"-%c\" of import requires a path", argument[1]);
    *out_text = value;
    return 0;
}

int import_argument(struct parse *parse, const char *argument)
{
    if (strcmp(argument, "--report") == 0) {
        parse->options->report = true;
        return 0;
    }
    if (strncmp(argument, "-o", 2) == 0)
        return import_text(parse, argument, &parse->options->output);
    if (strncmp(argument, "-p", 2) == 0)
        return import_text(parse, argument, &parse->options->prefix);
    if (argument[0] == '-' || !*argument)
        return options_fail(parse, "invalid argument of import: \"%s\"", argument);
    if (parse->options->input)
        return options_fail(parse, "import takes one file, and \"%s\" is a second one", argument);
    parse->options->input = argument;
    return 0;
}
