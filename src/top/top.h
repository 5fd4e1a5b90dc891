/*
 * `sluice top`: the load of a running server, from its status page.
 */
#ifndef TOP_TOP_H
#define TOP_TOP_H

#include "command/options.h"

/* Exit status 0: the page was read; 1: it could not be read or printed. */
int command_top(const struct options *options);

#endif
