/*
 * The stored metadata and fields of a response, as text.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"
#include "http/date.h"
#include "http/h1_parse.h"
#include "http/status.h"

#include <errno.h>
#include <stdlib.h>

static bool is_worth_storing(struct str reason, int status)
{
    return reason.length > 0 && reason.length <= LIMIT_STORED_REASON && h1_is_value(reason) &&
           !str_equal(reason, status_reason(status));
}

struct str stored_response_write(const struct stored_metadata *metadata, struct str reason,
                                 const struct headers *headers, struct arena *arena)
{
    struct stored_metadata head = *metadata;
    size_t length = sizeof(head);
    char *text, *end;

    head.reason = is_worth_storing(reason, head.status) ? (uint16_t)reason.length : 0;
    length += head.reason;
    head.fields = headers->count;
    for (unsigned i = 0; i < headers->count; i++)
        length += headers->items[i].name.length + headers->items[i].value.length + 3;
    text = end = arena_alloc(arena, length);
    if (!text)
        return (struct str){NULL, 0};
    memcpy(end, &head, sizeof(head));
    end += sizeof(head);
    if (head.reason > 0)
        memcpy(end, reason.data, head.reason);
    end += head.reason;
    for (unsigned i = 0; i < headers->count; i++) {
        const struct header *field = &headers->items[i];

        memcpy(end, field->name.data, field->name.length);
        end += field->name.length;
        *end++ = ':';
        *end++ = ' ';
        memcpy(end, field->value.data, field->value.length);
        end += field->value.length;
        *end++ = '\n';
    }
    return str_of(text, length);
}

/* Parses metadata.fields lines after the reason phrase. False: malformed. */
static bool read_text(struct stored_response *stored, struct str text)
{
    stored->reason = str_slice(text, 0, stored->metadata.reason);
    if (stored->reason.length < stored->metadata.reason || !h1_is_value(stored->reason))
        return false;
    text = str_skip(text, stored->metadata.reason);
    for (unsigned i = 0; i < stored->metadata.fields; i++) {
        struct str line = str_cut(&text, '\n');
        struct str value = line;
        struct str name = str_cut(&value, ':');

        if (!text.data || !value.data || !str_starts(value, STR(" ")))
            return false;
        value = str_skip(value, 1);
        if (!h1_is_token(name) || !h1_is_value(value))
            return false;
        stored->items[i] = (struct header){name, value};
    }
    stored->headers = (struct headers){stored->items, stored->metadata.fields, stored->metadata.fields};
    return str_empty(text);
}

int stored_response_date(struct headers *headers, struct arena *arena, int64_t received_s)
{
    char text[DATE_LENGTH + 1];
    struct str value;

    if (headers_have_date(headers, received_s))
        return 0;
    value = arena_copy(arena, date_format(received_s, text));
    return value.data ? headers_set(headers, arena, STR("Date"), value) : -ENOMEM;
}

void stored_response_validators(const struct headers *headers, int64_t received_s, int64_t now_s,
                                struct validators *out)
{
    struct str modified = headers_value(headers, STR("Last-Modified"));
    struct str date = headers_value(headers, STR("Date"));

    out->etag = headers_value(headers, STR("ETag"));
    if (!modified.data || date_parse(modified, now_s, &out->modified) < 0)
        out->modified = -1;
    if (!date.data || date_parse(date, now_s, &out->dated) < 0)
        out->dated = received_s;
}

static void set_freshness(struct stored_response *stored, int64_t now_s)
{
    stored->freshness = (struct freshness){.lifetime_s = stored->metadata.lifetime_s,
                                           .no_cache = stored->metadata.no_cache,
                                           .never_stale = stored->metadata.never_stale,
                                           .stale_while_revalidate = stored->metadata.stale_while_revalidate,
                                           .stale_if_error = stored->metadata.stale_if_error};
    stored_response_validators(&stored->headers, stored->metadata.received_s, now_s, &stored->validators);
}

const struct stored_response *stored_response_of(struct cache_entry *entry, int64_t now_s)
{
    struct stored_metadata metadata;
    struct stored_response *stored;

    if (entry->parsed)
        return entry->parsed;
    if (stored_metadata_read(entry->head, &metadata) < 0 || metadata.fields > entry->head.length)
        return NULL;
    stored = calloc(1, sizeof(*stored) + metadata.fields * sizeof(stored->items[0]));
    if (!stored)
        return NULL;
    stored->metadata = metadata;
    if (!read_text(stored, str_skip(entry->head, sizeof(metadata)))) {
        free(stored);
        return NULL;
    }
    set_freshness(stored, now_s);
    entry->parsed = stored;
    return stored;
}
