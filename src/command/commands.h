/*
 * What sluice can be asked to do, one function each. They print for people, and
 * return the exit status of the process.
 */
#ifndef COMMAND_COMMANDS_H
#define COMMAND_COMMANDS_H

#include "command/options.h"

struct worker_start;

/* Loads the configuration and runs the server until a signal ends it. */
int command_run(const struct options *options);
/* -t and -T: nginx's two lines on standard error; -T prints the effective configuration on standard output. Needs no rights. */
int command_test(const struct options *options);
/* -s: finds the running server by its pid file. */
int command_signal(const struct options *options);
/* -V: versions, and what was built in. */
int command_build(void);
/* JSON Schema of the configuration on standard output. */
int command_schema(void);
/* One directive, or the names of all. */
int command_help(const struct options *options);
/*
 * command_import.c: nginx's configuration as sluice's. 0: all of it was carried, or is not needed; 2: not all, or with another meaning; 1: it
 * could not be read, or written.
 */
int command_import(const struct options *options);
/* serve.c: HTTPS for a folder, without a configuration file. */
int command_serve(const struct options *options);
/* The life of a worker process, for struct master_start: worker_run, with the listeners of `stream`. */
int command_worker(const struct worker_start *start);
/* command_fmt.c: files in one layout. Exit 1 where one cannot be read or, with --check or --diff, is laid out otherwise. */
int command_fmt(const struct options *options);

#endif
