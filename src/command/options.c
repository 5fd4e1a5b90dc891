/*
 * Parses the command line: flags by options_flags.c, subcommands by the table here.
 */
#include "command/options_parse.h"

#include "base/limits.h"
#include "build_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FIELD(name) offsetof(struct options, name)

static int parse_port_option(struct parse *parse, const char *text)
{
    uint64_t port;

    if (str_to_u64(str_from(text), &port) < 0 || port == 0 || port > 65535)
        return options_fail(parse, "invalid port \"%s\": it is a number from 1 to 65535", text);
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

static int serve_argument(struct parse *parse, const char *argument)
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

static int docs_argument(struct parse *parse, const char *argument)
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

static int doctor_argument(struct parse *parse, const char *argument)
{
    int result =
        strncmp(argument, "-c", 2) == 0 ? options_flags(parse, argument + 1) : doctor_option(parse, argument);

    return result == 0 && parse->at + 1 == parse->argc ? check_doctor(parse) : result;
}

static int schema_argument(struct parse *parse, const char *argument)
{
    return options_fail(parse, "schema takes no argument (\"%s\")", argument);
}

static int help_argument(struct parse *parse, const char *argument)
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

static int import_argument(struct parse *parse, const char *argument)
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

static const struct subcommand {
    const char *name;
    enum command command;
    subcommand_argument *argument;
} subcommands[] = {
    {"serve", COMMAND_SERVE, serve_argument},
    {"docs", COMMAND_DOCS, docs_argument},
    {"doctor", COMMAND_DOCTOR, doctor_argument},
    {"schema", COMMAND_SCHEMA, schema_argument},
    {"help", COMMAND_HELP, help_argument},
    {"import", COMMAND_IMPORT, import_argument},
    {"fmt", COMMAND_FMT, fmt_argument},
    {"lint", COMMAND_LINT, lint_argument},
    {"explain", COMMAND_EXPLAIN, explain_argument},
    {"top", COMMAND_TOP, top_argument},
    {"ctl", COMMAND_CTL, ctl_argument},
};

#define SUBCOMMAND_COUNT (sizeof(subcommands) / sizeof(subcommands[0]))

static int parse_subcommand(struct parse *parse)
{
    const char *name = parse->argv[parse->at];
    const char *suggestion = NULL;
    size_t distance = 3;

    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) {
        size_t far = str_distance(str_from(name), str_from(subcommands[i].name));

        if (far == 0) {
            parse->options->command = subcommands[i].command;
            while (++parse->at < parse->argc) {
                const char *argument = parse->argv[parse->at];
                int result;

                if (strcmp(argument, "-h") == 0 || strcmp(argument, "--help") == 0) {
                    parse->options->command = COMMAND_USAGE;
                    return 0;
                }
                result = subcommands[i].argument(parse, argument);
                if (result < 0)
                    return result;
            }
            return 0;
        }
        if (far < distance) {
            distance = far;
            suggestion = subcommands[i].name;
        }
    }
    if (suggestion)
        return options_fail(parse, "unknown command \"%s\": did you mean \"%s\"?", name, suggestion);
    return options_fail(parse,
                "unknown command \"%s\": the commands are serve, docs, doctor, schema, help, import, fmt, lint, "
                "explain, top and ctl; a configuration file goes after -c",
                name);
}

static int parse_word(struct parse *parse, const char *word)
{
    if (strcmp(word, "--help") == 0)
        return options_flags(parse, "h");
    if (strcmp(word, "--version") == 0)
        return options_flags(parse, "v");
    if (word[0] != '-' || !word[1] || word[1] == '-')
        return options_fail(parse, "invalid option: \"%s\"", word);
    return options_flags(parse, word + 1);
}

int options_parse(int argc, char *const *argv, struct options *out_options, char *out_error,
                  size_t error_size)
{
    struct options options = {0};
    struct parse parse = {.argc = argc,
                          .argv = argv,
                          .at = 1,
                          .options = &options,
                          .error = out_error,
                          .error_size = error_size};

    for (; parse.at < argc; parse.at++) {
        const char *word = argv[parse.at];
        bool subcommand = parse.at == 1 && word[0] != '-' && word[0];
        int result = subcommand ? parse_subcommand(&parse) : parse_word(&parse, word);

        if (result < 0)
            return result;
    }
    options.argv = argv;
    *out_options = options;
    return 0;
}

const char *options_conf_path(const struct options *options, char *into, size_t size)
{
    const char *conf = options->conf;
    int length;

    if (conf && (conf[0] == '/' || !options->prefix || strcmp(conf, "-") == 0))
        length = snprintf(into, size, "%s", conf);
    else if (options->prefix)
        length = snprintf(into, size, "%s/%s", options->prefix, conf ? conf : "conf/sluice.yaml");
    else
        length = snprintf(into, size, "%s", SLUICE_CONF);
    return length < 0 || (size_t)length >= size ? NULL : into;
}

const char *options_usage(void)
{
    return "sluice " SLUICE_VERSION ": HTTPS server for static files and reverse proxy, with kernel TLS\n"
           "\n"
           "Try it\n"
           "  sluice serve [DIR] [OPTION...]  HTTPS for a directory (default: .), on this machine only, with\n"
           "                                  a generated certificate. --port N (8443), --spa, --acme NAME,\n"
           "                                  --autoindex, --cert FILE [--key FILE], --open-to-network\n"
           "  sluice doctor [--json] [-c F]   report whether kernel TLS works; -c: and certificates by ACME\n"
           "  sluice doctor --report [FILE]   for bug reports, with a benchmark (--seconds N, --no-benchmark)\n"
           "\n"
           "Run it\n"
           "  -c FILE        configuration (default: " SLUICE_CONF ";\n"
           "                 with -p, conf/sluice.yaml below it)\n"
           "  -p PREFIX      where relative paths start (default: the directory of the file)\n"
           "  -e FILE        error log until the configuration names one (default: stderr)\n"
           "  -g DIRECTIVES  YAML read after the file, replacing it: -g 'daemon: off'\n"
           "\n"
           "Check it\n"
           "  -t, -T         test the configuration: exit 0 or 1; -T also prints the effective one\n"
           "  -q             print errors only\n"
           "  sluice explain URL [-c FILE]    how a URL is handled, by which directives, with their places\n"
           "  sluice lint [FILE]      report valid but probably wrong settings (--format text, gcc, json, sarif)\n"
           "  sluice fmt [-w|--check|--diff] FILE...   format files, keeping comments: print them, write them\n"
           "                          back (-w), check them, or show the differences\n"
           "  sluice schema           print the JSON Schema of the configuration, for editors\n"
           "  sluice help DIRECTIVE   describe one directive: meaning, default, scopes\n"
           "  sluice docs [PORT]      serve the documentation on this machine (8080)\n"
           "  sluice import NGINX_CONF [-o FILE] [-p PREFIX] [--report]   convert nginx's configuration, and\n"
           "                          list what was not converted (--report: in the YAML, too)\n"
           "\n"
           "Control it\n"
           "  -s SIGNAL      stop (at once), quit (after open requests), reopen (logs), reload, upgrade (binary)\n"
           "  sluice top [URL] [--once [--json]] [--interval N]   live view of a server, from its status page\n"
           "  sluice ctl [-s SOCKET] [--json] COMMAND   state of the running server (sluice ctl help)\n"
           "\n"
           "  -v, -V, -h     version; version and build options; this text\n"
           "\n"
           "Examples\n"
           "  sluice serve ~/public\n"
           "  sluice -t -c /etc/sluice/sluice.yaml && sluice -c /etc/sluice/sluice.yaml\n"
           "  sluice -s quit\n";
}
