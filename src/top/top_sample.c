/*
 * Parses a status page by a table of the metrics that are shown.
 */
#include "top/top_sample.h"

#include "top/top_reader.h"

#include <errno.h>
#include <stddef.h>

const char *const top_connection_names[] = {"handshake", "reading", "writing", "waiting", NULL};
const char *const top_handshake_names[] = {"full", "resumed", "failed", NULL};
const char *const top_class_names[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx", NULL};

static const char *const version_names[] = {"version", NULL};

/* A metric, or a member of an upstream server. */
struct field {
    const char *name;
    int (*read)(struct top_reader *reader, const struct field *field, void *into); /* into: the struct with the field */
    size_t offset;
    const char *const *labels;      /* of the values, which are consecutive from `offset` on */
};

static int read_fields(struct top_reader *reader, const struct field *fields, struct str key, void *into)
{
    for (; fields->name; fields++) {
        if (str_equal(key, str_from(fields->name)))
            return fields->read(reader, fields, into);
    }
    return top_read_ignored(reader);
}

static void *field_at(const struct field *field, void *into)
{
    return (char *)into + field->offset;
}

static struct arena *arena_of(const struct top_reader *reader)
{
    struct top_sample *sample = reader->owner;

    return &sample->arena;
}

static int read_number(struct top_reader *reader, const struct field *field, void *into)
{
    return top_read_number(reader, field_at(field, into));
}

static int read_seconds(struct top_reader *reader, const struct field *field, void *into)
{
    return top_read_seconds(reader, field_at(field, into));
}

static int read_text(struct top_reader *reader, const struct field *field, void *into)
{
    struct str *text = field_at(field, into);
    struct str read;
    int error = top_read_scalar(reader, &read);

    if (error < 0)
        return error;
    *text = arena_copy(arena_of(reader), str_slice(read, 0, LIMIT_TOP_NAME));
    return text->data ? 0 : -ENOMEM;
}

/* The values of a metric with labels; `owner` of the values is the struct at `into`. */
struct labelled {
    const struct field *field;
    void *into;
};

static int read_labelled_number(struct top_reader *reader, struct str key, void *argument)
{
    const struct labelled *labelled = argument;
    uint64_t *numbers = field_at(labelled->field, labelled->into);

    for (size_t i = 0; labelled->field->labels[i]; i++) {
        if (str_equal(key, str_from(labelled->field->labels[i])))
            return top_read_number(reader, &numbers[i]);
    }
    return top_read_ignored(reader);
}

static int read_numbers(struct top_reader *reader, const struct field *field, void *into)
{
    struct labelled labelled = {field, into};

    return top_read_object(reader, read_labelled_number, &labelled);
}

static int read_labelled_text(struct top_reader *reader, struct str key, void *argument)
{
    const struct labelled *labelled = argument;

    return str_equal(key, str_from(labelled->field->labels[0])) ? read_text(reader, labelled->field, labelled->into)
                                                                : top_read_ignored(reader);
}

static int read_fact(struct top_reader *reader, const struct field *field, void *into)
{
    struct labelled labelled = {field, into};

    return top_read_object(reader, read_labelled_text, &labelled);
}

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
    const struct field *field = argument;
    struct top_path *path = str_empty(key) ? NULL : path_named(reader->owner, key);

    if (!path)
        return top_read_ignored(reader);
    return top_read_number(reader, field_at(field, path));
}

/* The offset of the field is that in struct top_path. */
static int read_paths(struct top_reader *reader, const struct field *field, void *into)
{
    struct field of_path = *field;

    return top_read_object(reader, read_path, &of_path);
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

static int read_histogram(struct top_reader *reader, const struct field *field, void *into)
{
    return top_read_object(reader, read_histogram_member, field_at(field, into));
}

static const struct field upstream_fields[] = {
    {"upstream", read_text, offsetof(struct top_upstream, group), NULL},
    {"server", read_text, offsetof(struct top_upstream, server), NULL},
    {"state", read_text, offsetof(struct top_upstream, state), NULL},
    {"requests_total", read_number, offsetof(struct top_upstream, requests), NULL},
    {"failures_total", read_number, offsetof(struct top_upstream, failures), NULL},
    {"active", read_number, offsetof(struct top_upstream, active), NULL},
    {"header_seconds", read_seconds, offsetof(struct top_upstream, header_us), NULL},
    {"answer_seconds", read_seconds, offsetof(struct top_upstream, answer_us), NULL},
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
    return read_fields(reader, upstream_fields, key, argument);
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

static int read_upstreams(struct top_reader *reader, const struct field *field, void *into)
{
    return top_read_list(reader, read_upstream, NULL);
}

static const struct field zone_fields[] = {
    {"zone", read_text, offsetof(struct top_zone, name), NULL},
    {"requests_total", read_number, offsetof(struct top_zone, requests), NULL},
    {"responses_total", read_numbers, offsetof(struct top_zone, responses), top_class_names},
    {"request_duration_seconds", read_histogram, offsetof(struct top_zone, latency), NULL},
    {"connections_total", read_number, offsetof(struct top_zone, requests), NULL},
    {"sessions_total", read_numbers, offsetof(struct top_zone, responses), top_class_names},
    {"session_duration_seconds", read_histogram, offsetof(struct top_zone, latency), NULL},
    {"active", read_number, offsetof(struct top_zone, active), NULL},
    {NULL, NULL, 0, NULL},
};

static int read_zone_member(struct top_reader *reader, struct str key, void *argument)
{
    return read_fields(reader, zone_fields, key, argument);
}

static int read_zone(struct top_reader *reader, struct str key, void *argument)
{
    struct top_zones *zones = argument;
    void *items;

    if (zones->count >= LIMIT_STATUS_ZONES)
        return -E2BIG;
    items = list_reserve(arena_of(reader), zones->items, zones->count, &zones->capacity, sizeof(*zones->items));
    if (!items)
        return -ENOMEM;
    zones->items = items;
    return top_read_object(reader, read_zone_member, &zones->items[zones->count++]);
}

static int read_zones(struct top_reader *reader, const struct field *field, void *into)
{
    return top_read_list(reader, read_zone, field_at(field, into));
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

static int read_cache_responses(struct top_reader *reader, const struct field *field, void *into)
{
    return top_read_object(reader, read_cache_responses_member, into);
}

static const struct field cache_fields[] = {
    {"cache", read_text, offsetof(struct top_cache, name), NULL},
    {"files", read_number, offsetof(struct top_cache, files), NULL},
    {"bytes", read_number, offsetof(struct top_cache, bytes), NULL},
    {"max_bytes", read_number, offsetof(struct top_cache, max_bytes), NULL},
    {"responses_total", read_cache_responses, 0, NULL},
    {NULL, NULL, 0, NULL},
};

static int read_cache_member(struct top_reader *reader, struct str key, void *argument)
{
    return read_fields(reader, cache_fields, key, argument);
}

/* As many as zones are read. */
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

static int read_caches(struct top_reader *reader, const struct field *field, void *into)
{
    return top_read_list(reader, read_cache, NULL);
}

#define AT(field) offsetof(struct top_sample, field)

static const struct field metrics[] = {
    {"build_info", read_fact, AT(version), version_names},
    {"start_time_seconds", read_number, AT(started_s), NULL},
    {"generation", read_number, AT(generation), NULL},
    {"workers", read_number, AT(workers), NULL},
    {"worker_restarts_total", read_number, AT(restarts), NULL},
    {"connections", read_numbers, AT(connections), top_connection_names},
    {"connections_accepted_total", read_number, AT(accepted), NULL},
    {"requests_total", read_number, AT(requests), NULL},
    {"responses_total", read_numbers, AT(responses), top_class_names},
    {"request_duration_seconds", read_histogram, AT(latency), NULL},
    {"sent_bytes_total", read_paths, offsetof(struct top_path, bytes), NULL},
    {"transfers_total", read_paths, offsetof(struct top_path, transfers), NULL},
    {"tls_handshakes_total", read_numbers, AT(handshakes), top_handshake_names},
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
    return read_fields(reader, metrics, key, reader->owner);
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
