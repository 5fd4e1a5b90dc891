/*
 * Parses the command line: flags by options_flags.c, subcommands by the table here.
 */
#include "command/options_parse.h"

#include "build_options.h"

#include <stdio.h>
#include <string.h>

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
