/*
 * Regular expressions by PCRE2, compiled to machine code where the system allows it. They match bytes unless the
 * pattern begins with (*UTF); "$" matches only at the end of the subject. A match fails when it exceeds the caps on
 * steps and memory (limits.h), so that no request can block the loop.
 */
#ifndef BASE_REGEX_H
#define BASE_REGEX_H

#include "base/str.h"

#define REGEX_GROUPS 10             /* the whole match and $1 to $9 */
#define REGEX_MESSAGE   128         /* bytes of an error text on a bad pattern */

struct regex;

/*
 * Compiles a pattern; `nocase` ignores ASCII case. 0, -ENOMEM, or -EINVAL with the offset in the pattern in *out_at
 * and an error text in `message`. The caller destroys the regex.
 */
MUST_CHECK int regex_compile(struct str pattern, bool nocase, struct regex **out_regex, size_t *out_at,
                             char message[REGEX_MESSAGE]);
/* Accepts NULL. */
void regex_destroy(struct regex *regex);

/*
 * Matches the subject, and keeps the groups in the regex: one thread at a time may use a regex. 1: match; 0: no match;
 * -E2BIG: a cap on steps or memory was exceeded; -ENOMEM; -EILSEQ: (*UTF) and the subject is not UTF-8.
 */
MUST_CHECK int regex_match(const struct regex *regex, struct str subject);
/*
 * Group `number` of the last match of this regex (0: the whole match), a view into `subject`, which must be the same
 * text; data is NULL for a group that did not participate.
 */
struct str regex_group(const struct regex *regex, struct str subject, unsigned number);

/* The number of capturing groups of the pattern. */
unsigned regex_group_count(const struct regex *regex);
/* The name and number of the named group at `index`; the name lives as long as the regex. False past the end. */
bool regex_name(const struct regex *regex, unsigned index, struct str *out_name, unsigned *out_number);

#endif
