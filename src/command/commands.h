/*
 * The commands of sluice, one function each. They print their results and return the exit status of the process.
 */
#ifndef COMMAND_COMMANDS_H
#define COMMAND_COMMANDS_H

#include "command/options.h"

struct worker_args;

/* Loads the configuration and runs the server until a signal ends it. */
int command_run(const struct options *options);
/*
 * -t and -T: prints nginx's two lines on standard error; -T also the effective configuration on standard output.
 * Needs no privileges.
 */
int command_test(const struct options *options);
/* -s: signals the running server, found by its pid file; with `upgrade` replaces it. */
int command_signal(const struct options *options);
/* -V: prints versions and build options. */
int command_build(void);
/* Prints the JSON Schema of the configuration on standard output. */
int command_schema(void);
/* Prints the help of one directive, or the names of all. */
int command_help(const struct options *options);
/*
 * command_import.c: converts nginx's configuration. Returns 0: everything was converted or is not needed; 2: some
 * directives were left out or changed their meaning; 1: it could not be read, or the result has no server, does not
 * load, or could not be written.
 */
int command_import(const struct options *options);
/*
 * command_ctl.c: sends one command to a running server through its control socket. Exit status 1 if the server cannot
 * be reached, or rejects the command.
 */
int command_ctl(const struct options *options);
/* serve.c: serves a directory over HTTPS without a configuration file. */
int command_serve(const struct options *options);
/* command_docs.c: serves the HTML pages of the documentation over HTTP, on the loopback addresses. */
int command_docs(const struct options *options);
/* Runs a worker process, for struct master_args: worker_run with the listeners of `stream`. */
int command_worker(const struct worker_args *args);
/*
 * command_fmt.c: formats files. Exit status 1 if one cannot be read or, with --check or --diff, has another layout.
 */
int command_fmt(const struct options *options);

#endif
