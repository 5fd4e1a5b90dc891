/*
 * A regular expression of the configuration: its captures become variables of the subject, an exchange or a
 * connection of stream (site/user_variables.h).
 */
#ifndef SITE_CAPTURE_H
#define SITE_CAPTURE_H

#include "base/regex.h"
#include "conf/directive.h"

struct user_variables;
struct capture;

/*
 * Compiles `text`, a word of the node; an error is reported with its column. The expression lives as long as
 * the configuration. Returns 0, -EINVAL or -ENOMEM.
 */
MUST_CHECK int capture_read(struct conf_reader *reader, const struct conf_node *node, struct str text, bool nocase,
                            const struct capture **out_capture);
/* Frees the memory that is not in the arena. */
void captures_finish(struct user_variables *own);

/*
 * Matches `text` (which lives as long as the subject). Returns 1 on a match: $1 to $9 and the named variables are
 * set, unless the expression captures nothing; 0: no match; or -errno of regex_match or memory, logged in the error
 * log.
 */
MUST_CHECK int capture_match(const struct capture *capture, const void *subject, struct str text);
/* Return the compiled expression, and its text as written. */
const struct regex *capture_regex(const struct capture *capture);
struct str capture_text(const struct capture *capture);

#endif
