/*
 * Texts about a directive from its row, shared by `sluice help` and the reference. Each function appends to `out`; 0
 * or -ENOMEM.
 */
#ifndef CONF_PRINT_DIRECTIVE_H
#define CONF_PRINT_DIRECTIVE_H

#include "conf/conf_vocabulary.h"

/* "http, server, location" for a mask of scopes. */
MUST_CHECK int scopes_print(unsigned mask, struct buffer *out);
/* The form of the value: "on or off", or the row's syntax between `quote` ("`" or ""). */
MUST_CHECK int value_print(const struct directive *directive, const char *quote, struct buffer *out);
/* A sentence about the inheritance of the value. */
const char *inheritance_text(const struct directive *directive);
/* The row's example, or one composed of its name and default, in YAML notation. */
MUST_CHECK int example_print(const struct directive *directive, struct buffer *out);
/* The scopes of a block, without those of a directive with the same name (`server` of an upstream). */
unsigned block_scopes(const struct conf_schema *schema, const struct block_word *block);

#endif
