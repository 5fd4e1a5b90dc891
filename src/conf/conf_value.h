/*
 * What the readers of values share; the rest of the house sees directive.h.
 */
#ifndef CONF_CONF_VALUE_H
#define CONF_CONF_VALUE_H

#include "conf/directive.h"

/* Reports that the node is missing or of the wrong kind, and returns -EINVAL. `wanted`: "a path". */
int value_refuse_kind(struct conf_reader *reader, const struct conf_node *node, const char *wanted);
/* "listen:80" or "listen 80" where a mapping was meant: the hint for that; otherwise an example of the directive. */
struct str value_space_hint(struct conf_reader *reader, const struct conf_node *node);
/* 0 where the node is a scalar with a value; reported otherwise. */
MUST_CHECK int value_scalar(struct conf_reader *reader, const struct conf_node *node, const char *wanted);
/* The same for free text, which a comment may have cut. */
MUST_CHECK int value_text(struct conf_reader *reader, const struct conf_node *node, const char *wanted);
/* on, off, true, false, yes, no. 0 or -EINVAL; reports nothing. */
MUST_CHECK int switch_parse(struct str text, bool *out);

/* The index of a word in a NULL-terminated list (with the switch words for "on" and "off"), or -1. */
int choice_find(const char *const *choices, struct str word);
/* Reports that `word` is none of the choices, and returns -EINVAL. */
int choice_refuse(struct conf_reader *reader, const struct conf_node *node, const char *const *choices,
                  struct str word);

/* Reads the node by the directive's type into its field, zeroed before (see directive_row for MERGE_APPEND). */
MUST_CHECK int field_read(struct conf_reader *reader, const struct directive *directive, const struct conf_node *node,
                          void *field);
/* The fallback into the field; nothing where there is none. */
MUST_CHECK int field_fallback(struct conf_reader *reader, const struct directive *directive, void *field);
/* Bytes of a field. */
size_t field_size(const struct directive *directive);

/* A value of a directive with `line` set, as it was written: 0, or -EINVAL where a control byte other than the tab stands in it. */
MUST_CHECK int value_check_line(struct conf_reader *reader, const struct conf_node *node, struct str text);

#endif
