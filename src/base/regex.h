/*
 * Regular expressions (PCRE2): compiled when the configuration is read, to machine code where the system allows
 * it. They match bytes, unless the pattern begins with (*UTF); "$" is the very end. What one match may cost in
 * steps and memory is capped (limits.h), so that no request can hold the loop up: such a match fails instead.
 */
#ifndef BASE_REGEX_H
#define BASE_REGEX_H

#include "base/str.h"

#define REGEX_GROUPS 10             /* the whole and $1 to $9: what can be asked for by number */
#define REGEX_SAID   128            /* bytes of a sentence on a bad pattern */

struct regex;

/*
 * Compiles a pattern, with `nocase` for letters of either case. 0; -ENOMEM; or -EINVAL with the offset in the pattern
 * in *out_at and a sentence in `said`. The caller destroys it.
 */
MUST_CHECK int regex_compile(struct str pattern, bool nocase, struct regex **out_regex, size_t *out_at,
                             char said[REGEX_SAID]);
/* Accepts NULL. */
void regex_destroy(struct regex *regex);

/* 1: it matches; 0: it does not; -E2BIG: it would take too long; -ENOMEM; -EILSEQ: the subject is no UTF-8, and (*UTF) was asked for. */
MUST_CHECK int regex_match(const struct regex *regex, struct str subject);
/* Group `number` of the match that came last (0: the whole), a view into its subject; data NULL where it took no part. */
struct str regex_group(const struct regex *regex, struct str subject, unsigned number);

/* Capturing groups of the pattern. */
unsigned regex_group_count(const struct regex *regex);
/* The name of the i-th named group, as long as the regex, and its number. False at the end. */
bool regex_name(const struct regex *regex, unsigned index, struct str *out_name, unsigned *out_number);

#endif
