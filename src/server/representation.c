/*
 * Responds with a selected representation: evaluates preconditions and ranges.
 */
#include "server/representation.h"

#include "base/limits.h"
#include "http/range.h"
#include "server/module.h"

#include <errno.h>

#define BOUNDARY_LENGTH 32

struct responder {
    struct exchange *x;
    const struct representation *whole;
};

/* Replaces earlier fields: those of a stored response are already set. */
static int set_header(const struct responder *responder, struct str name, struct str value)
{
    if (!value.data)
        return -ENOMEM;
    return headers_set(&responder->x->response.headers, &responder->x->arena, name, value);
}

static int set_type(const struct responder *responder, struct str type)
{
    if (!type.data)
        return -ENOMEM;
    if (str_empty(type))
        return 0;
    return headers_set(&responder->x->response.headers, &responder->x->arena, STR("Content-Type"), type);
}

/* Makes a body of a file span; worker_reader reads it if the consumer needs bytes. */
static struct body *file_span(struct exchange *x, const struct representation *whole, uint64_t at, uint64_t length)
{
    struct body *body = body_file(&x->arena, whole->fd, (int64_t)at, length, whole->release, whole->resource);

    if (body)
        body_file_read_with(body, worker_reader(exchange_worker(x)));
    return body;
}

static struct body *span_body(struct exchange *x, const struct representation *whole, uint64_t at, uint64_t length)
{
    struct body *body;

    if (whole->span)
        return whole->span(&x->arena, whole->resource, at, length);
    if (whole->content.data)
        body = body_referenced(&x->arena, str_of(whole->content.data + at, (size_t)length), whole->release,
                               whole->resource);
    else
        body = file_span(x, whole, at, length);
    if (body)
        whole->hold(whole->resource);
    return body;
}

struct body *representation_body(struct exchange *x, const struct representation *whole)
{
    return span_body(x, whole, 0, whole->size);
}

static int set_body(const struct responder *responder, uint64_t at, uint64_t length)
{
    responder->x->response.body = span_body(responder->x, responder->whole, at, length);
    return responder->x->response.body ? 0 : -ENOMEM;
}

static int respond_whole(const struct responder *responder)
{
    int error = set_type(responder, responder->whole->media_type);

    if (error == 0 && responder->whole->max_ranges)
        error = set_header(responder, STR("Accept-Ranges"), STR("bytes"));
    if (error < 0)
        return error;
    responder->x->response.status = 200;
    return set_body(responder, 0, responder->whole->size);
}

static struct str content_range(const struct responder *responder, const struct range *range)
{
    return arena_printf(&responder->x->arena, "bytes %llu-%llu/%llu", (unsigned long long)range->first,
                        (unsigned long long)range->last, (unsigned long long)responder->whole->size);
}

static int respond_range(const struct responder *responder, const struct range *range)
{
    int error = set_type(responder, responder->whole->media_type);

    if (error == 0)
        error = set_header(responder, STR("Content-Range"), content_range(responder, range));
    if (error < 0)
        return error;
    responder->x->response.status = 206;
    return set_body(responder, range->first, range->last - range->first + 1);
}

/*
 * Two bodies per range, its part header and its bytes, and the closing delimiter. The caller closes the bodies that
 * were made.
 */
static int make_parts(const struct responder *responder, const struct range *ranges, size_t count,
                      const char *boundary, struct body **parts)
{
    struct arena *arena = &responder->x->arena;
    struct str type = responder->whole->media_type;
    struct str line;

    for (size_t i = 0; i < count; i++) {
        struct str place = content_range(responder, &ranges[i]);

        line = arena_printf(arena, "%s--%s\r\n%s" STR_FMT "%sContent-Range: " STR_FMT "\r\n\r\n", i ? "\r\n" : "",
                            boundary, str_empty(type) ? "" : "Content-Type: ", STR_ARG(type),
                            str_empty(type) ? "" : "\r\n", STR_ARG(place));
        parts[2 * i] = line.data && place.data ? body_bytes(arena, line) : NULL;
        parts[2 * i + 1] = span_body(responder->x, responder->whole, ranges[i].first,
                                     ranges[i].last - ranges[i].first + 1);
        if (!parts[2 * i] || !parts[2 * i + 1])
            return -ENOMEM;
    }
    line = arena_printf(arena, "\r\n--%s--\r\n", boundary);
    parts[2 * count] = line.data ? body_bytes(arena, line) : NULL;
    return parts[2 * count] ? 0 : -ENOMEM;
}

/* multipart/byteranges (RFC 9110 14.6). */
static int respond_ranges(const struct responder *responder, const struct range *ranges, unsigned count)
{
    struct arena *arena = &responder->x->arena;
    struct body **parts = arena_zalloc(arena, 2 * count + 1, sizeof(struct body *));
    char boundary[BOUNDARY_LENGTH + 1] = "";
    int error = worker_random_id(exchange_worker(responder->x), boundary, BOUNDARY_LENGTH);

    if (!parts || error < 0)
        return error < 0 ? error : -ENOMEM;
    if (make_parts(responder, ranges, count, boundary, parts) == 0)
        responder->x->response.body = body_concat(arena, parts, 2 * count + 1);
    if (!responder->x->response.body) {
        for (unsigned i = 0; i < 2 * count + 1; i++)
            body_close(&parts[i]);
        return -ENOMEM;
    }
    responder->x->response.status = 206;
    return set_type(responder, arena_printf(arena, "multipart/byteranges; boundary=%s", boundary));
}

static int respond_unsatisfiable(const struct responder *responder)
{
    exchange_error_response(responder->x, 416);
    return set_header(responder, STR("Content-Range"),
                      arena_printf(&responder->x->arena, "bytes */%llu", (unsigned long long)responder->whole->size));
}

/* Range is defined for GET only (RFC 9110 14.2), and an error page is always complete. */
static int respond_content(const struct responder *responder, int64_t now)
{
    const struct request *request = &responder->x->request;
    const struct representation *whole = responder->whole;
    struct range ranges[LIMIT_RANGES];
    struct str value = {NULL, 0};
    int count = 0;

    if (request->method == METHOD_GET && whole->max_ranges && !exchange_is_error_page(responder->x))
        value = headers_value(&request->headers, STR("Range"));
    if (value.data && !exchange_needs_whole_body(responder->x) &&
        conditional_range_allowed(request, &whole->validators, now))
        count = range_parse(value, whole->size, ranges, whole->max_ranges);
    if (count < 0)
        return respond_unsatisfiable(responder);
    if (count == 0)
        return respond_whole(responder);
    return count == 1 ? respond_range(responder, &ranges[0]) : respond_ranges(responder, ranges, (unsigned)count);
}

int representation_respond(struct exchange *x, const struct representation *whole)
{
    const struct responder responder = {.x = x, .whole = whole};
    int64_t now = clock_wall_s(exchange_clock(x));
    int status = 0;

    if (!exchange_is_error_page(x))
        status = conditional_check(&x->request, &whole->validators, now, whole->exact);
    if (status == 412) {
        exchange_error_response(x, 412);
        return 0;
    }
    if (status == 304) {
        x->response.status = 304;
        headers_remove(&x->response.headers, STR("Content-Type"));
        return 0;
    }
    return respond_content(&responder, now);
}
