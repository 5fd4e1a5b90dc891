/*
 * Prints help texts: through a pager and with colours if the standard output is a terminal, else unchanged.
 */
#ifndef COMMAND_TERMINAL_H
#define COMMAND_TERMINAL_H

#include "base/buffer.h"

/* The environment variables that decide; each may be NULL. */
struct terminal_environment {
    const char *sluice_pager, *pager, *no_color, *term;
};

/* False for terminals without control sequences, and if NO_COLOR is set and not empty (https://no-color.org). */
bool terminal_colours(const struct terminal_environment *environment);
/*
 * Returns the command line of the pager: SLUICE_PAGER, else PAGER, else "less -FRX". NULL: none, if the first of these
 * that is set is empty or "cat", or if the terminal has no control sequences.
 */
const char *terminal_pager(const struct terminal_environment *environment);
/*
 * Appends a text of `sluice help` with control sequences: headings, which are the lines in the first column up to
 * their colon, are bold, and the labels below them ("  where     ") are coloured. Returns 0 or -ENOMEM.
 */
MUST_CHECK int terminal_highlight(struct str text, struct buffer *out);
/*
 * Prints a text of `sluice help` on the standard output. A pager that ends early is no error; if it cannot be run,
 * the text is printed without it. Returns 0 or -errno.
 */
MUST_CHECK int terminal_print(struct str text);

#endif
