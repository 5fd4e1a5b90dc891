/*
 * Reads JSON by libyaml's events.
 */
#include "top/top_reader.h"

#include "base/limits.h"

#include <errno.h>

static int event_next(struct top_reader *reader)
{
    yaml_event_delete(&reader->event);
    if (yaml_parser_parse(&reader->yaml, &reader->event))
        return reader->event.type == YAML_ALIAS_EVENT || reader->event.type == YAML_NO_EVENT ? -EBADMSG : 0;
    memset(&reader->event, 0, sizeof(reader->event));
    return reader->yaml.error == YAML_MEMORY_ERROR ? -ENOMEM : -EBADMSG;
}

int top_reader_start(struct top_reader *reader, struct str text, void *owner)
{
    int error = 0;

    memset(reader, 0, sizeof(*reader));
    reader->owner = owner;
    if (!yaml_parser_initialize(&reader->yaml))
        return -ENOMEM;
    yaml_parser_set_input_string(&reader->yaml, (const unsigned char *)str_or_empty(text).data, text.length);
    yaml_parser_set_encoding(&reader->yaml, YAML_UTF8_ENCODING);
    for (int i = 0; i < 3 && error == 0; i++) /* the start of the stream, of the document, and of the value */
        error = event_next(reader);
    return error;
}

void top_reader_finish(struct top_reader *reader)
{
    yaml_event_delete(&reader->event);
    yaml_parser_delete(&reader->yaml);
}

int top_read_scalar(const struct top_reader *reader, struct str *out_text)
{
    if (reader->event.type != YAML_SCALAR_EVENT)
        return -EBADMSG;
    *out_text = str_of((const char *)reader->event.data.scalar.value, reader->event.data.scalar.length);
    return 0;
}

/* Copies the key, because the event of the value replaces it. Longer keys are unknown, and become empty. */
static int read_key(const struct top_reader *reader, char into[LIMIT_TOP_KEY], struct str *out_key)
{
    struct str key;
    int error = top_read_scalar(reader, &key);

    if (error < 0)
        return error;
    if (key.length > LIMIT_TOP_KEY)
        key.length = 0;
    memcpy(into, key.data, key.length);
    *out_key = str_of(into, key.length);
    return 0;
}

int top_read_object(struct top_reader *reader, top_value_reader *member, void *argument)
{
    if (reader->event.type != YAML_MAPPING_START_EVENT)
        return -EBADMSG;
    for (;;) {
        char memory[LIMIT_TOP_KEY];
        struct str key;
        int error = event_next(reader);

        if (error < 0 || reader->event.type == YAML_MAPPING_END_EVENT)
            return error;
        error = read_key(reader, memory, &key);
        if (error == 0)
            error = event_next(reader);
        if (error == 0)
            error = member(reader, key, argument);
        if (error < 0)
            return error;
    }
}

int top_read_list(struct top_reader *reader, top_value_reader *item, void *argument)
{
    int error = reader->event.type == YAML_SEQUENCE_START_EVENT ? event_next(reader) : -EBADMSG;

    while (error == 0 && reader->event.type != YAML_SEQUENCE_END_EVENT) {
        error = item(reader, STR(""), argument);
        if (error == 0)
            error = event_next(reader);
    }
    return error;
}

int top_read_number(const struct top_reader *reader, uint64_t *out_number)
{
    struct str text;
    int error = top_read_scalar(reader, &text);

    return error == 0 && str_to_u64(text, out_number) < 0 ? -EBADMSG : error;
}

int top_seconds_parse(struct str text, uint64_t *out_us)
{
    struct str fraction = text;
    struct str whole = str_cut(&fraction, '.');
    uint64_t seconds, part = 0;

    if (str_to_u64(whole, &seconds) < 0 || seconds > UINT64_MAX / 1000000 - 1)
        return -EBADMSG;
    if (fraction.data && (fraction.length > 6 || str_to_u64(fraction, &part) < 0))
        return -EBADMSG;
    for (size_t digits = fraction.length; fraction.data && digits < 6; digits++)
        part *= 10;
    *out_us = seconds * 1000000 + part;
    return 0;
}

int top_read_seconds(const struct top_reader *reader, uint64_t *out_us)
{
    struct str text;
    int error = top_read_scalar(reader, &text);

    return error == 0 ? top_seconds_parse(text, out_us) : error;
}

static int depth_change(yaml_event_type_t type)
{
    if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
        return 1;
    return type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT ? -1 : 0;
}

int top_read_ignored(struct top_reader *reader)
{
    int depth = depth_change(reader->event.type);

    while (depth > 0) {
        int error = event_next(reader);

        if (error < 0)
            return error;
        depth += depth_change(reader->event.type);
        if (depth > LIMIT_TOP_DEPTH)
            return -E2BIG;
    }
    return 0;
}
