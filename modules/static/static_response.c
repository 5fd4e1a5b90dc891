/*
 * The response with a file: its validators and Vary; server/representation.h handles conditions and ranges. Path and
 * stat are from the file cache.
 */
#include "static.h"

#include "http/date.h"
#include "server/representation.h"

#include <errno.h>

static char *write_hex(char *into, uint64_t value)
{
    int count = (67 - __builtin_clzll(value | 1)) / 4;

    for (int i = count; i-- > 0; value >>= 4)
        into[i] = "0123456789abcdef"[value & 15];
    return into + count;
}

/* Variants of a file in different codings may have the same time and size, so the ETag ends with the coding. */
static char *write_etag_end(char *into, enum coding coding)
{
    if (coding != CODINGS) {
        struct str name = coding_name(coding);

        *into++ = '-';
        memcpy(into, name.data, name.length);
        into += name.length;
    }
    *into++ = '"';
    return into;
}

/* The form of nginx, time and size, with the fraction of the second if the file system has one. */
static struct str make_etag(struct arena *arena, const struct stat *stat, uint64_t size, enum coding coding)
{
    char *text = arena_alloc(arena, 64);
    char *end = text;

    if (!text)
        return (struct str){NULL, 0};
    *end++ = '"';
    end = write_hex(end, (uint64_t)stat->st_mtim.tv_sec);
    if (stat->st_mtim.tv_nsec) {
        *end++ = '.';
        end = write_hex(end, (uint64_t)stat->st_mtim.tv_nsec);
    }
    *end++ = '-';
    end = write_hex(end, size);
    end = write_etag_end(end, coding);
    return str_of(text, (size_t)(end - text));
}

static struct str make_hash_etag(struct arena *arena, const struct file_entry *entry)
{
    char *text = arena_alloc(arena, 2 * STATIC_DIGEST + 2);

    if (!text)
        return (struct str){NULL, 0};
    text[0] = text[2 * STATIC_DIGEST + 1] = '"';
    for (size_t i = 0; i < STATIC_DIGEST; i++) {
        text[2 * i + 1] = "0123456789abcdef"[entry->digest[i] >> 4];
        text[2 * i + 2] = "0123456789abcdef"[entry->digest[i] & 15];
    }
    return str_of(text, 2 * STATIC_DIGEST + 2);
}

static int add_response_header(struct exchange *x, struct str name, struct str value)
{
    if (!value.data)
        return -ENOMEM;
    return headers_add(&x->response.headers, &x->arena, name, value);
}

/* Last-Modified and ETag, in 200, 206 and 304. Last-Modified is never later than Date (RFC 9110 8.8.2.1). */
static int add_validators(struct exchange *x, const struct file_entry *entry, struct str etag)
{
    int64_t now = clock_wall_s(exchange_clock(x));
    int64_t modified = entry->stat.st_mtim.tv_sec;
    char *text = arena_alloc(&x->arena, DATE_LENGTH + 1);
    int error;

    if (!text)
        return -ENOMEM;
    error = add_response_header(x, STR("Last-Modified"), date_format(modified < now ? modified : now, text));
    return error == 0 && etag.length ? add_response_header(x, STR("ETag"), etag) : error;
}

static void hold_file_entry(void *resource)
{
    file_entry_ref(resource);
}

static void release_file_entry(void *resource)
{
    file_entry_unref(resource);
}

/* If precompressed variants may exist, every response has Vary, also one with the plain file. */
static int add_vary(struct exchange *x, const struct static_conf *conf)
{
    return conf->siblings.count ? add_response_header(x, STR("Vary"), STR("Accept-Encoding")) : 0;
}

/* A 206 has the Content-Encoding of the complete file, too (RFC 9110 8.4). A 304 has none. */
static int respond_encoded(struct exchange *x, const struct representation *whole, enum coding coding)
{
    int error = coding == CODINGS ? 0 : add_response_header(x, STR("Content-Encoding"), coding_name(coding));

    if (error == 0)
        error = representation_respond(x, whole);
    if (x->response.status != 200 && x->response.status != 206)
        headers_remove(&x->response.headers, STR("Content-Encoding"));
    return error;
}

static int respond_file(struct exchange *x, const struct static_conf *conf, struct file_entry *entry,
                       enum coding coding)
{
    struct representation whole = {.size = entry->content.data ? entry->content.length : (uint64_t)entry->stat.st_size,
                                   .media_type = exchange_media_type(x, x->request.path),
                                   .exact = conf->if_modified_since == MODIFIED_EXACT,
                                   .max_ranges = (unsigned)conf->max_ranges,
                                   .content = entry->content,
                                   .fd = entry->fd,
                                   .hold = hold_file_entry,
                                   .release = release_file_entry,
                                   .resource = entry};
    int error;

    whole.validators.modified = entry->stat.st_mtim.tv_sec;
    whole.validators.ignore_modified_since = conf->if_modified_since == MODIFIED_OFF;
    if (conf->etag != ETAG_OFF) {
        whole.validators.etag = conf->etag == ETAG_HASH && entry->digested
                                    ? make_hash_etag(&x->arena, entry)
                                    : make_etag(&x->arena, &entry->stat, whole.size, coding);
        if (!whole.validators.etag.data)
            return -ENOMEM;
    }
    if (coding != CODINGS && whole.max_ranges > 1)
        whole.max_ranges = 1; /* multipart/byteranges itself has no content coding */
    error = add_validators(x, entry, whole.validators.etag);
    if (error == 0)
        error = add_vary(x, conf);
    return error < 0 ? error : respond_encoded(x, &whole, coding);
}

enum outcome static_respond_file(struct exchange *x, const struct static_conf *conf, struct file_entry *entry,
                                enum coding coding)
{
    int error = respond_file(x, conf, entry, coding);

    /* The body holds its own reference. */
    file_entry_unref(entry);
    if (error < 0)
        return exchange_error_response_log(x, 500, LOG_ERROR, "the response cannot be created: %s", strerror(-error));
    return OUTCOME_RESPONDED;
}
