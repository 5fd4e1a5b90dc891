/*
 * Shared by the readers of values. Other directories use directive.h.
 */
#ifndef CONF_CONF_VALUE_H
#define CONF_CONF_VALUE_H

#include "conf/directive.h"

/* Reports a missing node or a wrong kind, and returns -EINVAL. `wanted` is the expected value: "a path". */
int value_reject_kind(struct conf_reader *reader, const struct conf_node *node, const char *wanted);
/* A hint for "listen:80" or "listen 80" instead of a mapping; otherwise an example of the directive. */
struct str value_space_hint(struct conf_reader *reader, const struct conf_node *node);
/* 0 if the node is a scalar with a value; otherwise reports. */
MUST_CHECK int value_scalar(struct conf_reader *reader, const struct conf_node *node, const char *wanted);
/* As value_scalar, for free text, which a comment may have truncated. */
MUST_CHECK int value_text(struct conf_reader *reader, const struct conf_node *node, const char *wanted);

/* The index of a word in a NULL-terminated list (true and yes count as "on", false and no as "off"), or -1. */
int choice_find(const char *const *choices, struct str word);
/* Reports that `word` is not among the choices, and returns -EINVAL. */
int choice_reject(struct conf_reader *reader, const struct conf_node *node, const char *const *choices,
                  struct str word);

/* Reads the node by the directive's type into its zeroed field (see directive_row for MERGE_APPEND). */
MUST_CHECK int field_read(struct conf_reader *reader, const struct directive *directive, const struct conf_node *node,
                          void *field);
/* Warns that a deprecated directive is used; `key` is its name in the file. */
void field_warn_deprecated(struct conf_reader *reader, const struct directive *directive, const struct conf_node *key);
/* Sets the field to the default, if there is one. */
MUST_CHECK int field_set_default(struct conf_reader *reader, const struct directive *directive, void *field);
/* The size of a field in bytes. */
size_t field_size(const struct directive *directive);

/* Checks a value of a directive with `line` set: 0, or -EINVAL for a control byte other than the tab. */
MUST_CHECK int value_check_line(struct conf_reader *reader, const struct conf_node *node, struct str text);

#endif
