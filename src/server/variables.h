/*
 * nginx's variables, and sluice's own: one table, each a function of the exchange.
 */
#ifndef SERVER_VARIABLES_H
#define SERVER_VARIABLES_H

#include "conf/template.h"

/* Subject of every variable: a const struct exchange *. */
extern const struct variable_table variables_core;
/* The core's and all modules'. */
const struct variable_table *variables_all(void);

#endif
