/*
 * What a row of a table says of a directive, in words: shared by `sluice help` and the reference. Each appends to `out`;
 * 0 or -ENOMEM.
 */
#ifndef CONF_PRINT_DIRECTIVE_H
#define CONF_PRINT_DIRECTIVE_H

#include "conf/conf_vocabulary.h"

/* "http, server, location" of a mask of scopes. */
MUST_CHECK int scopes_print(unsigned mask, struct buffer *out);
/* What is written behind the name: "on or off", or the row's syntax between `quote` ("`" or ""). */
MUST_CHECK int value_print(const struct directive *directive, const char *quote, struct buffer *out);
const char *inheritance_text(const struct directive *directive);
MUST_CHECK int example_print(const struct directive *directive, struct buffer *out);
/* Where a block stands: not where a directive of the same name does (`server` of an upstream). */
unsigned block_scopes(const struct conf_schema *schema, const struct block_word *block);

#endif
