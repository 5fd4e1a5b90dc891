/*
 * The subjects of templates: an exchange in `http`, a connection in `stream`. The loader needs the names of their
 * variables and the functions that it stores in templates; src/server and src/stream define them.
 */
#ifndef SITE_SUBJECTS_H
#define SITE_SUBJECTS_H

#include "site/user_variables.h"

/* Variables whose subject is a const struct exchange *: those of the server and of all modules. */
const struct variable_table *variables_all(void);
extern const struct user_variable_subject user_variables_of_exchanges;
/* Variables whose subject is a const struct stream *. */
extern const struct variable_table variables_stream;
extern const struct user_variable_subject user_variables_of_streams;

#endif
