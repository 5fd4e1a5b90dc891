/*
 * Readers of fields by the type of the value.
 */
#include "top/top_field.h"

#include "top/top_sample.h"

#include <errno.h>

int top_fields_read(struct top_reader *reader, const struct top_field *fields, struct str key, void *into)
{
    for (; fields->name; fields++) {
        if (str_equal(key, str_from(fields->name)))
            return fields->read(reader, fields, into);
    }
    return top_read_ignored(reader);
}

static struct arena *arena_of(const struct top_reader *reader)
{
    struct top_sample *sample = reader->owner;

    return &sample->arena;
}

int top_field_number(struct top_reader *reader, const struct top_field *field, void *into)
{
    return top_read_number(reader, top_field_at(field, into));
}

int top_field_seconds(struct top_reader *reader, const struct top_field *field, void *into)
{
    return top_read_seconds(reader, top_field_at(field, into));
}

int top_field_text(struct top_reader *reader, const struct top_field *field, void *into)
{
    struct str *text = top_field_at(field, into);
    struct str read;
    int error = top_read_scalar(reader, &read);

    if (error < 0)
        return error;
    *text = arena_copy(arena_of(reader), str_slice(read, 0, LIMIT_TOP_NAME));
    return text->data ? 0 : -ENOMEM;
}

/* A metric with labels, and the struct at `into` that has its field. */
struct labelled {
    const struct top_field *field;
    void *into;
};

static int read_labelled_number(struct top_reader *reader, struct str key, void *argument)
{
    const struct labelled *labelled = argument;
    uint64_t *numbers = top_field_at(labelled->field, labelled->into);

    for (size_t i = 0; labelled->field->labels[i]; i++) {
        if (str_equal(key, str_from(labelled->field->labels[i])))
            return top_read_number(reader, &numbers[i]);
    }
    return top_read_ignored(reader);
}

int top_field_numbers(struct top_reader *reader, const struct top_field *field, void *into)
{
    struct labelled labelled = {field, into};

    return top_read_object(reader, read_labelled_number, &labelled);
}

static int read_labelled_text(struct top_reader *reader, struct str key, void *argument)
{
    const struct labelled *labelled = argument;

    if (!str_equal(key, str_from(labelled->field->labels[0])))
        return top_read_ignored(reader);
    return top_field_text(reader, labelled->field, labelled->into);
}

int top_field_labelled_text(struct top_reader *reader, const struct top_field *field, void *into)
{
    struct labelled labelled = {field, into};

    return top_read_object(reader, read_labelled_text, &labelled);
}

static int read_bucket(struct top_reader *reader, struct str key, void *argument)
{
    struct top_histogram *histogram = argument;
    struct top_bucket bucket = {.bound_us = UINT64_MAX};
    const struct top_bucket *last = histogram->count > 0 ? &histogram->buckets[histogram->count - 1] : NULL;
    int error = top_read_number(reader, &bucket.count);

    if (error == 0 && !str_equal(key, STR("+Inf")))
        error = top_seconds_parse(key, &bucket.bound_us);
    if (error < 0)
        return error;
    if (last && (bucket.bound_us <= last->bound_us || bucket.count < last->count))
        return -EBADMSG;
    if (histogram->count == LIMIT_TOP_BUCKETS)
        return -E2BIG;
    histogram->buckets[histogram->count++] = bucket;
    return 0;
}

static int read_histogram_member(struct top_reader *reader, struct str key, void *argument)
{
    struct top_histogram *histogram = argument;

    if (str_equal(key, STR("buckets")))
        return top_read_object(reader, read_bucket, histogram);
    return str_equal(key, STR("sum")) ? top_read_seconds(reader, &histogram->sum_us) : top_read_ignored(reader);
}

int top_field_histogram(struct top_reader *reader, const struct top_field *field, void *into)
{
    return top_read_object(reader, read_histogram_member, top_field_at(field, into));
}
