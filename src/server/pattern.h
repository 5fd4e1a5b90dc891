/*
 * A regular expression of the configuration: what it captures become variables of the exchange.
 */
#ifndef SERVER_PATTERN_H
#define SERVER_PATTERN_H

#include "base/regex.h"
#include "conf/directive.h"
#include "http/exchange.h"

struct own_variables;
struct pattern;

/*
 * Compiles `text`, a word of the node; a mistake is told with the column at which it stands. The pattern lives as long as the
 * configuration. 0, -EINVAL or -ENOMEM.
 */
MUST_CHECK int pattern_read(struct conf_reader *reader, const struct conf_node *node, struct str text, bool nocase,
                            const struct pattern **out_pattern);
/* Frees what the arena does not hold. */
void patterns_finish(struct own_variables *own);

/*
 * 1: `subject` (which lasts as long as x) matches, and what was captured is $1 to $9 and the named variables from now on; a
 * pattern that captures nothing leaves them. 0: it does not match. Or -errno of regex_match or memory, and said in the error log.
 */
MUST_CHECK int pattern_match(const struct pattern *pattern, struct exchange *x, struct str subject);
const struct regex *pattern_regex(const struct pattern *pattern);
struct str pattern_text(const struct pattern *pattern);

/* $1 to $9 as they are now; to be given back, so that what matches between does not change them. */
struct str *pattern_groups(struct exchange *x);
void pattern_restore(struct exchange *x, struct str *groups);

#endif
