/*
 * The parts of `sluice ctl`: the request for a command, the response, and its output. command_ctl.c connects them to
 * the socket.
 */
#ifndef COMMAND_CTL_H
#define COMMAND_CTL_H

#include "base/buffer.h"

enum { CTL_ARGUMENTS = 3, CTL_OPTIONS = 7 };

/* A word after the command: a member of the request's JSON object; for a GET, a parameter of the query. */
struct ctl_argument {
    const char *name;               /* NULL: there are no more */
    bool number;                    /* sent as a number if the word is a number; else as a text */
    bool word;                      /* of an option: NAME, which means true; else NAME=VALUE */
    /* Placeholder of an option's value in the list of commands: "TIME"; NULL: "N" for a number, else "TEXT". */
    const char *value;
};

/* One command: the words of the command line, and the request that they make. */
struct ctl_verb {
    const char *noun;
    const char *verb;               /* NULL: the noun alone */
    const char *method;             /* NULL: GET */
    const char *path;               /* NULL: /v1/NOUN */
    const char *members;            /* further members of the JSON object: "\"state\": \"down\""; NULL: none */
    struct ctl_argument arguments[CTL_ARGUMENTS + 1];
    const char *help;
    /* Further words, in any order, each at most once. */
    struct ctl_argument options[CTL_OPTIONS + 1];
    bool slow;                      /* the server may respond after a long time: no timeout */
    bool diff;                      /* ctl_configuration_diff instead of a request */
};

/* Ended by a row without a noun. */
extern const struct ctl_verb ctl_verbs[];

/* Finds the command that the words name. NULL with one sentence in `out_error` (at least 256 bytes). */
const struct ctl_verb *ctl_find(char *const *words, size_t count, char *out_error, size_t error_size);
/* Appends the HTTP request for a command found by ctl_find; `table`: for a table instead of JSON. 0 or -ENOMEM. */
MUST_CHECK int ctl_request_print(const struct ctl_verb *verb, char *const *words, size_t count, bool table,
                                 struct buffer *out);
/*
 * Parses a complete HTTP response: the bytes up to the end of the connection. Returns 0, or -EPROTO if it is malformed
 * or shorter than its Content-Length.
 */
MUST_CHECK int ctl_response_parse(struct str received, int *out_status, struct str *out_body);
/*
 * Appends lines of fields separated by tabs as aligned columns, numbers to the right. An empty line ends the table; the
 * rest is appended unchanged. 0 or -ENOMEM.
 */
MUST_CHECK int ctl_table_print(struct str lines, struct buffer *out);

/*
 * ctl_configuration.c: prints which files of the running configuration differ from those on disk and, without `json`,
 * the lines. Returns the exit status, as that of diff(1): 0 equal, 1 different, 2 failure.
 */
int ctl_configuration_diff(const char *socket, bool json);

#endif
