/*
 * Reads the members of an object into the fields of a struct, by a table with a row for each field.
 */
#ifndef TOP_TOP_FIELD_H
#define TOP_TOP_FIELD_H

#include "top/top_reader.h"

struct top_field;

/* Reads a value into the struct at `into`. Returns 0 or -errno, as top_value_reader. */
typedef int top_field_reader(struct top_reader *reader, const struct top_field *field, void *into);

struct top_field {
    const char *name;               /* of the member; NULL ends a table */
    top_field_reader *read;
    size_t offset;                  /* of the field in the struct */
    const char *const *labels;      /* of the values, which are consecutive from `offset` on */
};

static inline void *top_field_at(const struct top_field *field, void *into)
{
    return (char *)into + field->offset;
}

/* Reads the member `key`, which is ignored if the table has no row for it. Returns 0 or -errno. */
MUST_CHECK int top_fields_read(struct top_reader *reader, const struct top_field *fields, struct str key, void *into);

/* A uint64_t: a number, or microseconds. */
top_field_reader top_field_number, top_field_seconds;
/* A struct str in the arena of the sample, at most LIMIT_TOP_NAME bytes long. */
top_field_reader top_field_text;
/* An object with a number for each of the labels: consecutive uint64_t. */
top_field_reader top_field_numbers;
/* An object: the text of its member with the first label. */
top_field_reader top_field_labelled_text;
/* A struct top_histogram. */
top_field_reader top_field_histogram;

#endif
