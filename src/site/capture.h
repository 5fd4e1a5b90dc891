/*
 * A regular expression of the configuration: what it captures become variables of what it is asked for, an exchange or a
 * connection of stream (site/user_variables.h).
 */
#ifndef SITE_CAPTURE_H
#define SITE_CAPTURE_H

#include "base/regex.h"
#include "conf/directive.h"

struct user_variables;
struct capture;

/*
 * Compiles `text`, a word of the node; a mistake is told with the column at which it stands. The pattern lives as long as the
 * configuration. 0, -EINVAL or -ENOMEM.
 */
MUST_CHECK int capture_read(struct conf_reader *reader, const struct conf_node *node, struct str text, bool nocase,
                            const struct capture **out_capture);
/* Frees what the arena does not hold. */
void captures_finish(struct user_variables *own);

/*
 * 1: `text` (which lasts as long as the subject) matches, and what was captured is $1 to $9 and the named variables from now on; a
 * pattern that captures nothing leaves them. 0: it does not match. Or -errno of regex_match or memory, and said in the error log.
 */
MUST_CHECK int capture_match(const struct capture *pattern, const void *subject, struct str text);
const struct regex *capture_regex(const struct capture *pattern);
struct str capture_text(const struct capture *pattern);

#endif
