/*
 * Parses a status page by a table of the metrics that are shown.
 */
#include "top/top_sample.h"

#include "top/top_field.h"

#include <errno.h>
#include <stddef.h>

const char *const top_connection_names[] = {"handshake", "reading", "writing", "waiting", NULL};
const char *const top_handshake_names[] = {"full", "resumed", "failed", NULL};
const char *const top_class_names[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx", NULL};

static const char *const version_names[] = {"version", NULL};

/* Finds or adds a path. NULL: there is no room. */
static struct top_path *path_named(struct top_sample *sample, struct str name)
{
    struct top_path *path = sample->paths;

    for (; path < sample->paths + sample->path_count; path++) {
        if (str_equal(path->name, name))
            return path;
    }
    if (sample->path_count == LIMIT_TOP_PATHS)
        return NULL;
    path->name = arena_copy(&sample->arena, name);
    if (!path->name.data)
        return NULL;
    sample->path_count++;
    return path;
}

static int read_path(struct top_reader *reader, struct str key, void *argument)
{
    const struct top_field *field = argument;
    struct top_path *path = str_empty(key) ? NULL : path_named(reader->owner, key);

    if (!path)
        return top_read_ignored(reader);
    return top_read_number(reader, top_field_at(field, path));
}

/* The offset of the field is that in struct top_path. */
static int read_paths(struct top_reader *reader, const struct top_field *field, void *into)
{
    struct top_field of_path = *field;

    return top_read_object(reader, read_path, &of_path);
}

static const struct top_field upstream_fields[] = {
    {"upstream", top_field_text, offsetof(struct top_upstream, group), NULL},
    {"server", top_field_text, offsetof(struct top_upstream, server), NULL},
    {"state", top_field_text, offsetof(struct top_upstream, state), NULL},
    {"requests_total", top_field_number, offsetof(struct top_upstream, requests), NULL},
    {"failures_total", top_field_number, offsetof(struct top_upstream, failures), NULL},
    {"active", top_field_number, offsetof(struct top_upstream, active), NULL},
    {"header_seconds", top_field_seconds, offsetof(struct top_upstream, header_us), NULL},
    {"answer_seconds", top_field_seconds, offsetof(struct top_upstream, answer_us), NULL},
    {NULL, NULL, 0, NULL},
};

/* Returns `items` with room for one more, in the arena. NULL: out of memory. */
static void *list_reserve(struct arena *arena, void *items, unsigned count, unsigned *capacity, size_t size)
{
    unsigned room = *capacity ? 2 * *capacity : 16;
    void *grown;

    if (count < *capacity)
        return items;
    grown = arena_zalloc(arena, room, size);
    if (!grown)
        return NULL;
    if (count > 0)
        memcpy(grown, items, count * size);
    *capacity = room;
    return grown;
}

static int read_upstream_member(struct top_reader *reader, struct str key, void *argument)
{
    return top_fields_read(reader, upstream_fields, key, argument);
}

static int read_upstream(struct top_reader *reader, struct str key, void *argument)
{
    struct top_sample *sample = reader->owner;
    void *items;

    if (sample->upstream_count >= LIMIT_UPSTREAM_PEERS)
        return -E2BIG;
    items = list_reserve(&sample->arena, sample->upstreams, sample->upstream_count, &sample->upstream_capacity,
                         sizeof(*sample->upstreams));
    if (!items)
        return -ENOMEM;
    sample->upstreams = items;
    return top_read_object(reader, read_upstream_member, &sample->upstreams[sample->upstream_count++]);
}

static int read_upstreams(struct top_reader *reader, const struct top_field *field, void *into)
{
    return top_read_list(reader, read_upstream, NULL);
}

static const struct top_field zone_fields[] = {
    {"zone", top_field_text, offsetof(struct top_zone, name), NULL},
    {"requests_total", top_field_number, offsetof(struct top_zone, requests), NULL},
    {"responses_total", top_field_numbers, offsetof(struct top_zone, responses), top_class_names},
    {"request_duration_seconds", top_field_histogram, offsetof(struct top_zone, latency), NULL},
    {"connections_total", top_field_number, offsetof(struct top_zone, requests), NULL},
    {"sessions_total", top_field_numbers, offsetof(struct top_zone, responses), top_class_names},
    {"session_duration_seconds", top_field_histogram, offsetof(struct top_zone, latency), NULL},
    {"active", top_field_number, offsetof(struct top_zone, active), NULL},
    {NULL, NULL, 0, NULL},
};

static int read_zone_member(struct top_reader *reader, struct str key, void *argument)
{
    return top_fields_read(reader, zone_fields, key, argument);
}

static int read_zone(struct top_reader *reader, struct str key, void *argument)
{
    struct top_sample *sample = reader->owner;
    struct top_zones *zones = argument;
    void *items;

    if (zones->count >= LIMIT_STATUS_ZONES)
        return -E2BIG;
    items = list_reserve(&sample->arena, zones->items, zones->count, &zones->capacity, sizeof(*zones->items));
    if (!items)
        return -ENOMEM;
    zones->items = items;
    return top_read_object(reader, read_zone_member, &zones->items[zones->count++]);
}

static int read_zones(struct top_reader *reader, const struct top_field *field, void *into)
{
    return top_read_list(reader, read_zone, top_field_at(field, into));
}

/* Responses by $upstream_cache_status. */
static int read_cache_responses_member(struct top_reader *reader, struct str key, void *argument)
{
    struct top_cache *cache = argument;
    uint64_t number = 0;
    int error = top_read_number(reader, &number);

    if (__builtin_add_overflow(cache->responses, number, &cache->responses))
        cache->responses = UINT64_MAX;
    if (str_equal(key, STR("HIT")))
        cache->hits = number;
    return error;
}

static int read_cache_responses(struct top_reader *reader, const struct top_field *field, void *into)
{
    return top_read_object(reader, read_cache_responses_member, into);
}

static const struct top_field cache_fields[] = {
    {"cache", top_field_text, offsetof(struct top_cache, name), NULL},
    {"files", top_field_number, offsetof(struct top_cache, files), NULL},
    {"bytes", top_field_number, offsetof(struct top_cache, bytes), NULL},
    {"max_bytes", top_field_number, offsetof(struct top_cache, max_bytes), NULL},
    {"responses_total", read_cache_responses, 0, NULL},
    {NULL, NULL, 0, NULL},
};

static int read_cache_member(struct top_reader *reader, struct str key, void *argument)
{
    return top_fields_read(reader, cache_fields, key, argument);
}

/* Reads at most LIMIT_STATUS_ZONES caches. */
static int read_cache(struct top_reader *reader, struct str key, void *argument)
{
    struct top_sample *sample = reader->owner;
    void *items;

    if (sample->cache_count >= LIMIT_STATUS_ZONES)
        return -E2BIG;
    items = list_reserve(&sample->arena, sample->caches, sample->cache_count, &sample->cache_capacity,
                         sizeof(*sample->caches));
    if (!items)
        return -ENOMEM;
    sample->caches = items;
    return top_read_object(reader, read_cache_member, &sample->caches[sample->cache_count++]);
}

static int read_caches(struct top_reader *reader, const struct top_field *field, void *into)
{
    return top_read_list(reader, read_cache, NULL);
}

#define AT(field) offsetof(struct top_sample, field)

static const struct top_field metrics[] = {
    {"build_info", top_field_labelled_text, AT(version), version_names},
    {"start_time_seconds", top_field_number, AT(started_s), NULL},
    {"generation", top_field_number, AT(generation), NULL},
    {"workers", top_field_number, AT(workers), NULL},
    {"worker_restarts_total", top_field_number, AT(restarts), NULL},
    {"connections", top_field_numbers, AT(connections), top_connection_names},
    {"connections_accepted_total", top_field_number, AT(accepted), NULL},
    {"requests_total", top_field_number, AT(requests), NULL},
    {"responses_total", top_field_numbers, AT(responses), top_class_names},
    {"request_duration_seconds", top_field_histogram, AT(latency), NULL},
    {"sent_bytes_total", read_paths, offsetof(struct top_path, bytes), NULL},
    {"transfers_total", read_paths, offsetof(struct top_path, transfers), NULL},
    {"tls_handshakes_total", top_field_numbers, AT(handshakes), top_handshake_names},
    {"upstreams", read_upstreams, 0, NULL},
    {"server_zones", read_zones, AT(zones[TOP_SERVERS]), NULL},
    {"location_zones", read_zones, AT(zones[TOP_LOCATIONS]), NULL},
    {"stream_zones", read_zones, AT(zones[TOP_STREAMS]), NULL},
    {"caches", read_caches, 0, NULL},
    {NULL, NULL, 0, NULL},
};

static int read_metric(struct top_reader *reader, struct str key, void *argument)
{
    bool *is_status = argument;

    *is_status |= str_equal(key, STR("requests_total"));
    return top_fields_read(reader, metrics, key, reader->owner);
}

int top_sample_parse(struct str page, struct top_sample *out_sample)
{
    struct top_reader reader;
    bool is_status = false;
    int error;

    memset(out_sample, 0, sizeof(*out_sample));
    arena_init(&out_sample->arena, NULL, LIMIT_TOP_MEMORY);
    if (page.length > LIMIT_TOP_PAGE)
        return -E2BIG;
    error = top_reader_start(&reader, page, out_sample);
    if (error == 0)
        error = top_read_object(&reader, read_metric, &is_status);
    top_reader_finish(&reader);
    return error == 0 && !is_status ? -EBADMSG : error;
}

const char *top_sample_fault(int error)
{
    switch (error) {
    case -ENOMEM:
        return "out of memory";
    case -E2BIG:
        return "the status page has more values than sluice top reads";
    default:
        return "the page is not the JSON form of a status page of sluice";
    }
}

void top_sample_finish(struct top_sample *sample)
{
    arena_reset(&sample->arena);
}
