/*
 * The parsed command line: nginx's flags by one table, and sluice's subcommands. Parsing opens and prints nothing.
 */
#ifndef COMMAND_OPTIONS_H
#define COMMAND_OPTIONS_H

#include "base/buffer.h"

enum command {
    COMMAND_RUN,
    COMMAND_TEST,                   /* -t */
    COMMAND_TEST_PRINT,             /* -T */
    COMMAND_SIGNAL,                 /* -s */
    COMMAND_VERSION,                /* -v */
    COMMAND_BUILD,                  /* -V */
    COMMAND_USAGE,                  /* -h, -? */
    COMMAND_SERVE,
    COMMAND_DOCS,
    COMMAND_DOCTOR,
    COMMAND_SCHEMA,
    COMMAND_HELP,
    COMMAND_IMPORT,
    COMMAND_FMT,
    COMMAND_LINT,
    COMMAND_EXPLAIN,
    COMMAND_TOP,
    COMMAND_CTL,
};

enum output_format { OUTPUT_TEXT, OUTPUT_GCC, OUTPUT_JSON, OUTPUT_SARIF };

struct options {
    enum command command;
    char *const *argv;              /* arguments of main */
    const char *conf;               /* -c, or lint FILE; NULL: not given */
    const char *prefix;             /* -p */
    const char *error_log;          /* -e */
    const char *overlay;            /* -g */
    const char *signal;             /* -s: one of stop, quit, reopen, reload, upgrade */
    bool quiet;                     /* -q */
    bool json;                      /* doctor, top, ctl --json */
    const char *directive;          /* help DIRECTIVE; NULL: all of them */
    const char *input;              /* import FILE */
    const char *output;             /* import -o, doctor --report; NULL: standard output */
    bool report;                    /* import --report, doctor --report */
    bool no_benchmark;              /* doctor --no-benchmark */
    unsigned seconds;               /* doctor --seconds; 0: the default */
    const char *directory;          /* serve DIR */
    bool spa;                       /* serve --spa */
    bool autoindex;                 /* serve --autoindex */
    bool open_to_network;           /* serve --open-to-network */
    const char *certificate;        /* serve --cert FILE; NULL: made at start */
    const char *key;                /* serve --key FILE; NULL: in the same file */
    const char *acme;               /* serve --acme NAME; NULL: no certificate by ACME */
    const char *acme_directory;     /* serve --acme-directory URL; NULL: the default */
    unsigned port;                  /* serve --port, docs PORT; 0: the first free port from the default on */
    enum output_format format;      /* of lint and explain: --format */
    const char *url;                /* explain URL, top URL; NULL: none */
    bool once;                      /* top --once */
    unsigned interval_s;            /* top --interval; 0: not given */
    bool write;                     /* fmt -w */
    bool check;                     /* fmt --check */
    bool diff;                      /* fmt --diff */
    const char *socket;             /* ctl -s */
    char *const *files;             /* fmt FILE..., ctl COMMAND... */
    size_t file_count;
};

/*
 * Parses the arguments of main into `out_options`, whose texts point into argv. Returns 0, or -EINVAL with one
 * sentence in `out_error` (at least 256 bytes). Flags may be bundled and joined with their values ("-tq", "-cFILE"),
 * as in nginx.
 */
MUST_CHECK int options_parse(int argc, char *const *argv, struct options *out_options, char *out_error,
                             size_t error_size);

/* Returns the text of -h: at most 40 lines. Static. */
const char *options_usage(void);

/*
 * Writes the path of the configuration file to `into` and returns it: -c, below -p if relative, as in nginx; without
 * -c conf/sluice.yaml below -p, or the built-in path. NULL if it does not fit.
 */
const char *options_conf_path(const struct options *options, char *into, size_t size);

#endif
