/*
 * The answer with a file: its validators; the rest is server/representation.h's. Names and stat come from the cache.
 */
#include "static.h"

#include "http/date.h"
#include "server/representation.h"

#include <errno.h>

static char *write_hex(char *into, uint64_t value)
{
    char digits[16];
    int count = 0;

    do {
        digits[count++] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value);
    while (count)
        *into++ = digits[--count];
    return into;
}

/* nginx's form, time and size, and the fraction of the second where the file system keeps one. */
static struct str make_etag(struct arena *arena, const struct stat *stat, uint64_t size)
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
    *end++ = '"';
    return str_of(text, (size_t)(end - text));
}

/* Of what the file contains. */
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

static int add(struct exchange *x, struct str name, struct str value)
{
    if (!value.data)
        return -ENOMEM;
    return headers_add(&x->response.headers, &x->arena, name, value);
}

/* Last-Modified and ETag: with 200, 206 and 304 alike. A file of the future was not modified later than now
 * (8.8.2.1). */
static int add_validators(struct exchange *x, const struct file_entry *entry, struct str etag)
{
    int64_t now = clock_wall_s(exchange_clock(x));
    int64_t modified = entry->stat.st_mtim.tv_sec;
    char *text = arena_alloc(&x->arena, DATE_LENGTH + 1);
    int error;

    if (!text)
        return -ENOMEM;
    error = add(x, STR("Last-Modified"), date_format(modified < now ? modified : now, text));
    return error == 0 && etag.length ? add(x, STR("ETag"), etag) : error;
}

static void hold(void *held)
{
    file_entry_ref(held);
}

static void release(void *held)
{
    file_entry_unref(held);
}

static int answer_file(struct exchange *x, const struct static_conf *conf, struct file_entry *entry)
{
    struct representation whole = {.size = entry->content.data ? entry->content.length : (uint64_t)entry->stat.st_size,
                                   .media_type = exchange_media_type(x, x->request.path),
                                   .exact = conf->if_modified_since == MODIFIED_EXACT,
                                   .max_ranges = (unsigned)conf->max_ranges,
                                   .content = entry->content,
                                   .fd = entry->fd,
                                   .hold = hold,
                                   .release = release,
                                   .held = entry};
    int error;

    whole.validators.modified = conf->if_modified_since == MODIFIED_OFF ? -1 : entry->stat.st_mtim.tv_sec;
    if (conf->etag != ETAG_OFF) {
        whole.validators.etag = conf->etag == ETAG_HASH && entry->digested
                                    ? make_hash_etag(&x->arena, entry)
                                    : make_etag(&x->arena, &entry->stat, whole.size);
        if (!whole.validators.etag.data)
            return -ENOMEM;
    }
    error = add_validators(x, entry, whole.validators.etag);
    return error < 0 ? error : representation_answer(x, &whole);
}

enum outcome static_answer_file(struct exchange *x, const struct static_conf *conf, struct file_entry *entry)
{
    int error = answer_file(x, conf, entry);

    /* The body has a reference of its own. */
    file_entry_unref(entry);
    if (error < 0)
        return exchange_refuse_because(x, 500, LOG_ERROR, "cannot make the answer: %s", strerror(-error));
    return OUTCOME_ANSWERED;
}
