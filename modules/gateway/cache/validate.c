/*
 * Handles a 304 to a revalidation (RFC 9111 4.3.4).
 */
#include "modules/gateway/cache/response_cache.h"

#include "modules/gateway/fields.h"

#include <errno.h>

int stored_response_merge(struct gateway_request *p, const struct stored_response *stored, struct headers *out)
{
    static const char *const of_content[] = {"Content-Encoding", "Content-Length", "Content-Range", "ETag"};
    struct headers newer = {0};
    int error = gateway_end_to_end_fields(p, &p->reply.headers, &newer);

    for (unsigned i = 0; i < stored->headers.count && error == 0; i++)
        error = headers_add(out, &p->x->arena, stored->headers.items[i].name, stored->headers.items[i].value);
    headers_remove(out, STR("Age")); /* these two described the stored response on arrival */
    headers_remove(out, STR("Date"));
    for (size_t i = 0; i < sizeof(of_content) / sizeof(of_content[0]); i++)
        headers_remove(&newer, str_from(of_content[i]));
    if (error == 0)
        error = headers_remove_named(out, &p->x->arena, &newer);
    for (unsigned i = 0; i < newer.count && error == 0; i++)
        error = headers_add(out, &p->x->arena, newer.items[i].name, newer.items[i].value);
    return error;
}

/* True if the 304 may update the entry: it may be stored, sets no cookie, and has the same field names in Vary. */
static bool may_update_head(const struct cached *cached, const struct received_response *received)
{
    struct str known = cached->names.data ? cached->names : STR("");
    struct str names;

    return freshness_may_store(received) && !headers_find(received->headers, STR("Set-Cookie")) &&
           vary_read(received->headers, &cached->p->x->arena, &names) == 0 && str_equal(names, known);
}

/*
 * True if the 304 concerns the stored response by its validators. A strong and a weak tag with equal text match: a
 * server that compresses weakens the tag of the response, but not that of its 304.
 */
static bool validators_match(const struct headers *headers, const struct stored_response *stored)
{
    struct str tag = headers_value(headers, STR("ETag"));
    struct str modified = headers_value(headers, STR("Last-Modified"));
    struct str known = headers_value(&stored->headers, STR("Last-Modified"));

    if (tag.data)
        return etag_matches_weakly(tag, stored->validators.etag);
    return !modified.data || !known.data || str_equal(modified, known);
}

/* Another version: neither the stored body nor the stored fields can be used. */
static int retry_without_conditions(struct cached *cached)
{
    cache_store_remove_entry(cached->store, cached->stale);
    cache_entry_unref(cached->stale);
    cached->stale = NULL;
    cached->revalidates = false;
    cached->request_sent_s = cached_now_s(cached);
    return -EAGAIN;
}

int cached_revalidated(struct gateway_request *p, struct received_response *received)
{
    struct cached *cached = cached_of(p);
    const struct stored_response *stored = cached->stale->parsed;
    struct headers merged = {0}, counting = {0};
    struct stored_metadata metadata = stored->metadata;
    struct cache_control control;
    struct str head;
    int error;

    if (!validators_match(&p->reply.headers, stored))
        return retry_without_conditions(cached);
    error = stored_response_merge(p, stored, &merged);
    if (error == 0)
        error = stored_response_date(&merged, &p->x->arena, received->received_s);
    if (error == 0)
        error = cached_policy(p, &merged, received->received_s, &counting, &control);
    if (error < 0)
        return error;
    received->headers = &counting;
    received->response_control = &control;
    received->status = metadata.status == 206 ? 200 : metadata.status; /* the rules for a complete response apply */
    cached_set_times(p, received, &metadata);
    head = stored_response_write(&metadata, stored->reason, &merged, &p->x->arena);
    error = head.data ? cached_respond(cached, cached->stale, &metadata, &merged) : -ENOMEM;
    if (error < 0)
        return error;
    if (may_update_head(cached, received)) {
        cached_update_head(cached, cached->stale, head, &cached->origin.hash, cached->fill_lock);
        cached->fill_lock = 0;
    } else {
        cache_store_remove_entry(cached->store, cached->stale);
        cached_release_lock(p);
    }
    cached->base.status = CACHED_REVALIDATED;
    return 1;
}
