/*
 * Reads JSON as a stream of events. JSON is a subset of YAML; libyaml parses it, and the memory that it uses does not
 * depend on the size of the text. Aliases and deep nesting are rejected.
 */
#ifndef TOP_TOP_READER_H
#define TOP_TOP_READER_H

#include "base/str.h"

#include <yaml.h>

struct top_reader {
    yaml_parser_t yaml;
    yaml_event_t event;             /* the current one: the start of the value to be read */
    void *owner;                    /* of the caller */
};

/* Reads the value of a member or an item, which begins with the current event. Returns 0 or -errno. */
typedef int top_value_reader(struct top_reader *reader, struct str key, void *argument);

/* Moves to the root value. Returns 0 or -errno; the reader needs top_reader_finish in each case. */
MUST_CHECK int top_reader_start(struct top_reader *reader, struct str text, void *owner);
void top_reader_finish(struct top_reader *reader);

/* Each reads the value that begins with the current event, up to its end. Returns 0, -EBADMSG, -E2BIG or -ENOMEM. */

/* An object: calls `member` for each member; `key` is valid until that call returns. */
MUST_CHECK int top_read_object(struct top_reader *reader, top_value_reader *member, void *argument);
/* A list: calls `item` with an empty key. */
MUST_CHECK int top_read_list(struct top_reader *reader, top_value_reader *item, void *argument);
/* A text or number; valid until the next event. */
MUST_CHECK int top_read_scalar(const struct top_reader *reader, struct str *out_text);
/* A nonnegative integer. */
MUST_CHECK int top_read_number(const struct top_reader *reader, uint64_t *out_number);
/* A nonnegative number of seconds with at most six decimals, as microseconds. */
MUST_CHECK int top_read_seconds(const struct top_reader *reader, uint64_t *out_us);
/* Any value. */
MUST_CHECK int top_read_ignored(struct top_reader *reader);

/* As top_read_seconds, for a text. */
MUST_CHECK int top_seconds_parse(struct str text, uint64_t *out_us);

#endif
