/*
 * nginx's variables, and sluice's own: tables of small functions of the exchange, by theme.
 */
#ifndef SERVER_VARIABLES_H
#define SERVER_VARIABLES_H

#include "conf/template.h"
#include "http/exchange.h"

/* Subject of every variable: a const struct exchange * with a visit. Request, then connection, then answer. */
extern const struct variable_table variables_core;
extern const struct variable_table variables_connection;
extern const struct variable_table variables_answer;
/* The core's and all modules'. */
const struct variable_table *variables_all(void);

/*
 * The value of the fields that `parameter` names ("user_agent" for User-Agent), joined by ", " where there are several; data NULL
 * where there is none.
 */
struct str variable_of_headers(const struct headers *headers, struct str parameter, struct arena *arena);
/* The client's address in text, in the arena; for $remote_addr and the log. */
struct str variable_remote_addr(const struct exchange *x, struct arena *arena);

#endif
