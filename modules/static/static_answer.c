/*
 * The answer with a file: validators, preconditions (RFC 9110 13), ranges (RFC 9110 14). Names and stat come
 * from the cache; nothing here asks the kernel for anything but, for several ranges, a random boundary.
 */
#include "static.h"

#include "base/limits.h"
#include "http/conditional.h"
#include "http/date.h"
#include "http/range.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#define BOUNDARY_LENGTH 32

struct file_answer {
    struct exchange *x;
    const struct static_conf *conf;
    struct file_entry *entry;
    uint64_t size;
    struct str media_type;
    struct validators validators;
};

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

static int add(struct file_answer *answer, struct str name, struct str value)
{
    if (!value.data)
        return -ENOMEM;
    return headers_add(&answer->x->response.headers, &answer->x->arena, name, value);
}

/* Last-Modified and ETag: with 200, 206 and 304 alike. A file of the future was not modified later than now
 * (8.8.2.1). */
static int add_validators(struct file_answer *answer, int64_t now)
{
    int64_t modified = answer->entry->stat.st_mtim.tv_sec;
    char *text = arena_alloc(&answer->x->arena, DATE_LENGTH + 1);
    int error;

    if (!text)
        return -ENOMEM;
    error = add(answer, STR("Last-Modified"), date_format(modified < now ? modified : now, text));
    if (error == 0 && answer->validators.etag.length)
        error = add(answer, STR("ETag"), answer->validators.etag);
    return error;
}

static int set_body(struct file_answer *answer, uint64_t at, uint64_t length)
{
    answer->x->response.body = static_body(&answer->x->arena, answer->entry, at, length);
    return answer->x->response.body ? 0 : -ENOMEM;
}

static int answer_whole(struct file_answer *answer)
{
    int error = add(answer, STR("Content-Type"), answer->media_type);

    if (error == 0 && answer->conf->max_ranges)
        error = add(answer, STR("Accept-Ranges"), STR("bytes"));
    if (error < 0)
        return error;
    answer->x->response.status = 200;
    return set_body(answer, 0, answer->size);
}

static struct str content_range(struct file_answer *answer, const struct range *range)
{
    return arena_printf(&answer->x->arena, "bytes %llu-%llu/%llu", (unsigned long long)range->first,
                        (unsigned long long)range->last, (unsigned long long)answer->size);
}

static int answer_range(struct file_answer *answer, const struct range *range)
{
    int error = add(answer, STR("Content-Type"), answer->media_type);

    if (error == 0)
        error = add(answer, STR("Content-Range"), content_range(answer, range));
    if (error < 0)
        return error;
    answer->x->response.status = 206;
    return set_body(answer, range->first, range->last - range->first + 1);
}

static int make_boundary(char into[BOUNDARY_LENGTH + 1])
{
    unsigned char random[BOUNDARY_LENGTH / 2];

    if (getrandom(random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
        return -EAGAIN;
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(into + 2 * i, 3, "%02x", random[i]);
    return 0;
}

/* Two bodies for each range, its head and its bytes, and the closing line. Those made are the caller's to
 * close. */
static int make_parts(struct file_answer *answer, const struct range *ranges, size_t count,
                      const char *boundary, struct body **parts)
{
    struct arena *arena = &answer->x->arena;
    struct str line;

    for (size_t i = 0; i < count; i++) {
        struct str span = content_range(answer, &ranges[i]);

        line =
            arena_printf(arena, "%s--%s\r\nContent-Type: " STR_FMT "\r\nContent-Range: " STR_FMT "\r\n\r\n",
                         i ? "\r\n" : "", boundary, STR_ARG(answer->media_type), STR_ARG(span));
        parts[2 * i] = line.data && span.data ? body_bytes(arena, line) : NULL;
        parts[2 * i + 1] =
            static_body(arena, answer->entry, ranges[i].first, ranges[i].last - ranges[i].first + 1);
        if (!parts[2 * i] || !parts[2 * i + 1])
            return -ENOMEM;
    }
    line = arena_printf(arena, "\r\n--%s--\r\n", boundary);
    parts[2 * count] = line.data ? body_bytes(arena, line) : NULL;
    return parts[2 * count] ? 0 : -ENOMEM;
}

/* multipart/byteranges (RFC 9110 14.6). */
static int answer_ranges(struct file_answer *answer, const struct range *ranges, unsigned count)
{
    struct arena *arena = &answer->x->arena;
    struct body **parts = arena_zalloc(arena, 2 * count + 1, sizeof(struct body *));
    char boundary[BOUNDARY_LENGTH + 1];

    if (!parts || make_boundary(boundary) < 0)
        return -ENOMEM;
    if (make_parts(answer, ranges, count, boundary, parts) == 0)
        answer->x->response.body = body_concat(arena, parts, 2 * count + 1);
    if (!answer->x->response.body) {
        for (unsigned i = 0; i < 2 * count + 1; i++)
            body_close(&parts[i]);
        return -ENOMEM;
    }
    answer->x->response.status = 206;
    return add(answer, STR("Content-Type"),
               arena_printf(arena, "multipart/byteranges; boundary=%s", boundary));
}

static int answer_unsatisfiable(struct file_answer *answer)
{
    exchange_refuse(answer->x, 416);
    return add(answer, STR("Content-Range"),
               arena_printf(&answer->x->arena, "bytes */%llu", (unsigned long long)answer->size));
}

/* Range is defined for GET alone (14.2), and an error page is whole. */
static int answer_content(struct file_answer *answer, int64_t now)
{
    const struct request *request = &answer->x->request;
    struct range ranges[LIMIT_RANGES];
    struct str value = {NULL, 0};
    int count = 0;
    int error;

    if (request->method == METHOD_GET && answer->conf->max_ranges && !exchange_is_error_page(answer->x))
        value = headers_value(&request->headers, STR("Range"));
    if (value.data && conditional_range_allowed(request, &answer->validators, now))
        count = range_parse(value, answer->size, ranges, (unsigned)answer->conf->max_ranges);
    if (count < 0)
        return answer_unsatisfiable(answer);
    error = add_validators(answer, now);
    if (error < 0)
        return error;
    if (count == 0)
        return answer_whole(answer);
    return count == 1 ? answer_range(answer, &ranges[0]) : answer_ranges(answer, ranges, (unsigned)count);
}

static int answer_by_preconditions(struct file_answer *answer)
{
    int64_t now = clock_wall_s(exchange_clock(answer->x));
    int verdict = 0;

    if (answer->conf->etag != ETAG_OFF) {
        answer->validators.etag = make_etag(&answer->x->arena, &answer->entry->stat, answer->size);
        if (!answer->validators.etag.data)
            return -ENOMEM;
    }
    if (!exchange_is_error_page(answer->x))
        verdict = conditional_check(&answer->x->request, &answer->validators, now,
                                    answer->conf->if_modified_since == MODIFIED_EXACT);
    if (verdict == 412) {
        exchange_refuse(answer->x, 412);
        return 0;
    }
    if (verdict == 304) {
        answer->x->response.status = 304;
        return add_validators(answer, now);
    }
    return answer_content(answer, now);
}

enum outcome static_answer_file(struct exchange *x, const struct static_conf *conf, struct file_entry *entry)
{
    struct file_answer answer = {.x = x, .conf = conf, .entry = entry};
    int error;

    answer.size = entry->content.data ? entry->content.length : (uint64_t)entry->stat.st_size;
    answer.media_type = exchange_media_type(x, x->request.path);
    answer.validators.modified = conf->if_modified_since == MODIFIED_OFF ? -1 : entry->stat.st_mtim.tv_sec;
    error = answer_by_preconditions(&answer);
    /* The body has a reference of its own. */
    file_entry_unref(entry);
    if (error < 0)
        return exchange_refuse_because(x, 500, LOG_ERROR, "cannot make the answer: %s", strerror(-error));
    return OUTCOME_ANSWERED;
}
