/*
 * Parses responses: the head determines the framing of the body (RFC 9112 6.3), and the body is passed on in slices.
 */
#include "http/h1_reply.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "http/connection_options.h"
#include "http/h1_line_ends.h"

#include <errno.h>

void h1_reply_init(struct h1_reply *reply, const struct h1_reply_settings *settings, struct arena *arena,
                   struct headers *trailers)
{
    *reply = (struct h1_reply){
        .settings = *settings, .arena = arena, .trailers = trailers, .content_length = BODY_LENGTH_UNKNOWN,
        .scan = {.line_feeds = true}};
    arena_init(&reply->interim, arena->pool, 0);
}

/* Drops the fields of a 1xx and their memory. */
static void interim_discard(struct h1_reply *reply)
{
    if (!reply->interim.blocks)
        return;
    reply->headers = (struct headers){0};
    arena_reset(&reply->interim);
}

void h1_reply_finish(struct h1_reply *reply)
{
    interim_discard(reply);
    buffer_finish(&reply->head);
    if (reply->stage == READING_CHUNKS)
        h1_chunked_finish(&reply->chunked);
    reply->stage = READING_FAILED;
}

static enum h1_reply_step reply_fail(struct h1_reply *reply, const char *fault)
{
    h1_reply_finish(reply);
    reply->fault = fault;
    return REPLY_BAD;
}

static enum h1_reply_step fail_as(struct h1_reply *reply, int error, const char *fault)
{
    enum h1_reply_step step = reply_fail(reply, fault);

    return error == -ENOMEM ? REPLY_NO_MEMORY : step;
}

/* "HTTP/1.1 200 OK". Without a reason phrase the space before it may be missing, too. */
static const char *parse_status_line(struct h1_reply *reply, struct str line)
{
    struct str digits = str_slice(line, 9, 12);
    uint64_t status;

    if (line.length < 12 || !str_starts(line, STR("HTTP/1.")) || line.data[7] < '0' || line.data[7] > '9' ||
        line.data[8] != ' ')
        return "an invalid status line";
    if (str_to_u64(digits, &status) < 0 || status < 100 || status > 599)
        return "an invalid status";
    if (line.length > 12 && (line.data[12] != ' ' || !h1_is_value(str_skip(line, 12))))
        return "an invalid status line";
    reply->version = line.data[7] == '0' ? HTTP_1_0 : HTTP_1_1;
    reply->status = (int)status;
    reply->reason = str_skip(line, 13);
    return NULL;
}

static unsigned count_fields(const struct headers *headers, struct str name)
{
    const struct header *field = headers_find(headers, name);
    unsigned count = 0;

    for (; field; field = headers_next(headers, name, field))
        count++;
    return count;
}

static const char *parse_length(struct h1_reply *reply, bool *out_given)
{
    unsigned count = count_fields(&reply->headers, STR("Content-Length"));
    uint64_t length;

    *out_given = count > 0;
    if (count == 0)
        return NULL;
    if (count > 1)
        return "more than one Content-Length";
    if (str_to_u64(headers_value(&reply->headers, STR("Content-Length")), &length) < 0 || length > INT64_MAX)
        return "an invalid Content-Length";
    reply->content_length = length;
    return NULL;
}

/* Sets the stage for the body. Returns the fault, or NULL. */
static const char *parse_framing(struct h1_reply *reply)
{
    unsigned codings = count_fields(&reply->headers, STR("Transfer-Encoding"));
    bool measured;
    const char *fault = parse_length(reply, &measured);

    if (fault)
        return fault;
    if (codings > 0 && measured)
        return "both Content-Length and Transfer-Encoding";
    if (codings > 1 ||
        (codings == 1 &&
         (reply->version < HTTP_1_1 ||
          !str_equal_nocase(headers_value(&reply->headers, STR("Transfer-Encoding")), STR("chunked")))))
        return "a transfer coding other than chunked";
    reply->left = measured ? reply->content_length : 0;
    if (reply->bodiless || (measured && reply->content_length == 0))
        reply->stage = READING_OVER;
    else
        reply->stage = codings ? READING_CHUNKS : measured ? READING_LENGTH : READING_TO_END;
    return NULL;
}

static bool is_keepalive(const struct h1_reply *reply, const struct connection_options *options)
{
    if (reply->stage == READING_TO_END || options->close)
        return false;
    return reply->version >= HTTP_1_1 || options->keep_alive;
}

/* Statuses without a body, regardless of the fields (RFC 9110 6.4.1). */
static bool is_bodiless(const struct h1_reply *reply)
{
    return reply->settings.head || reply->status == 204 || reply->status == 304;
}

static enum h1_reply_step final_head(struct h1_reply *reply, const struct connection_options *options)
{
    const char *fault;

    reply->bodiless = is_bodiless(reply);
    fault = parse_framing(reply);
    if (fault)
        return reply_fail(reply, fault);
    reply->keepalive = is_keepalive(reply, options);
    if (reply->stage == READING_CHUNKS)
        h1_chunked_init(&reply->chunked, reply->arena, reply->trailers, LIMIT_HEADERS, true);
    reply->chunked.line_feeds = true;
    return REPLY_HEAD;
}

static enum h1_reply_step switch_protocols(struct h1_reply *reply)
{
    if (!reply->settings.upgrade)
        return reply_fail(reply, "101 to a request without Upgrade");
    reply->stage = READING_TO_END;
    return REPLY_HEAD;
}

static enum h1_reply_step parse_head(struct h1_reply *reply, struct arena *arena, struct str head)
{
    ssize_t feed = str_find(head, '\n');
    struct connection_options options;
    const char *fault;
    int error;

    fault = parse_status_line(reply, str_slice(head, 0, (size_t)feed - 1));
    if (fault)
        return reply_fail(reply, fault);
    reply->headers.count = 0;
    error = h1_parse_fields(str_slice(head, (size_t)feed + 1, head.length - 2), true, arena, &reply->headers);
    if (error)
        return fail_as(reply, error, "an invalid header field");
    if (connection_options_read(&reply->headers, &options) < 0)
        return reply_fail(reply, "too many options in Connection");
    if (reply->status == 101)
        return switch_protocols(reply);
    if (reply->status >= 200)
        return final_head(reply, &options);
    return REPLY_INTERIM;
}

/* A response head ends like a request head; only the first line differs. */
static int head_end(struct h1_reply *reply, struct str bytes)
{
    const struct session_settings limits = {.header_buffer_size = reply->settings.head_max,
                                            .large_header_size = reply->settings.head_max,
                                            .head_max = reply->settings.head_max,
                                            .max_headers = LIMIT_HEADERS};
    int end = h1_head_end(&reply->scan, &limits, bytes);

    return reply->scan.start > 0 ? -400 : end;
}

static bool begins_interim(struct str head)
{
    struct str status = str_slice(head, 9, 12);

    return str_starts(status, STR("1")) && !str_equal(status, STR("101"));
}

static enum h1_reply_step read_head(struct h1_reply *reply, struct str *in)
{
    size_t before = reply->head.length;
    struct str head = *in;
    struct arena *arena;
    int end;

    if (str_empty(*in))
        return REPLY_MORE;
    interim_discard(reply);
    if (before > 0) {
        if (buffer_append(&reply->head, *in) < 0)
            return fail_as(reply, -ENOMEM, "");
        head = buffer_str(&reply->head);
    }
    end = head_end(reply, head);
    if (end < 0)
        return reply_fail(reply, end == -400 ? "invalid HTTP" : "too big header");
    if (end == 0) {
        if (before == 0 && buffer_append(&reply->head, *in) < 0)
            return fail_as(reply, -ENOMEM, "");
        *in = str_skip(*in, in->length);
        return REPLY_MORE;
    }
    *in = str_skip(*in, size_sub_sat((size_t)end, before));
    arena = begins_interim(head) ? &reply->interim : reply->arena;
    head = h1_copy_lines(arena, str_slice(head, 0, (size_t)end));
    buffer_finish(&reply->head);
    reply->scan = (struct h1_scan){.line_feeds = true};
    return head.data ? parse_head(reply, arena, head) : fail_as(reply, -ENOMEM, "");
}

static enum h1_reply_step read_part(struct h1_reply *reply, struct str *in, uint64_t max,
                                    struct str *out_part)
{
    if (str_empty(*in))
        return REPLY_MORE;
    *out_part = str_slice(*in, 0, max < in->length ? (size_t)max : in->length);
    *in = str_skip(*in, out_part->length);
    return REPLY_PART;
}

static enum h1_reply_step read_length(struct h1_reply *reply, struct str *in, struct str *out_part)
{
    enum h1_reply_step step = read_part(reply, in, reply->left, out_part);

    if (step == REPLY_PART)
        h1_reply_skip(reply, out_part->length);
    return step;
}

static enum h1_reply_step read_chunks(struct h1_reply *reply, struct str *in, struct str *out_part)
{
    int result = h1_chunked_next(&reply->chunked, in, out_part);

    if (result == 1)
        return REPLY_PART;
    if (result == -EAGAIN)
        return REPLY_MORE;
    if (result < 0)
        return fail_as(reply, result, "an invalid chunk");
    h1_chunked_finish(&reply->chunked);
    reply->stage = READING_OVER;
    return REPLY_WHOLE;
}

enum h1_reply_step h1_reply_read(struct h1_reply *reply, struct str *in, struct str *out_part)
{
    switch (reply->stage) {
    case READING_HEAD:
        return read_head(reply, in);
    case READING_LENGTH:
        return read_length(reply, in, out_part);
    case READING_CHUNKS:
        return read_chunks(reply, in, out_part);
    case READING_TO_END:
        return read_part(reply, in, UINT64_MAX, out_part);
    case READING_OVER:
        return REPLY_WHOLE;
    case READING_FAILED:
        break;
    }
    return REPLY_BAD;
}

uint64_t h1_reply_unframed(const struct h1_reply *reply)
{
    if (reply->stage == READING_TO_END)
        return UINT64_MAX;
    return reply->stage == READING_LENGTH ? reply->left : 0;
}

void h1_reply_skip(struct h1_reply *reply, uint64_t count)
{
    if (reply->stage != READING_LENGTH)
        return;
    reply->left = u64_sub_sat(reply->left, count);
    if (reply->left == 0)
        reply->stage = READING_OVER;
}

/* After 101, `truncated` is ignored: the upgraded protocol has its own marker of its end. */
enum h1_reply_step h1_reply_ended(struct h1_reply *reply, bool truncated)
{
    if (reply->stage == READING_TO_END && truncated && reply->status != 101)
        return reply_fail(reply, "the connection was closed without close_notify, so the body may be incomplete");
    if (reply->stage == READING_TO_END) {
        reply->stage = READING_OVER;
        reply->keepalive = false;
    }
    if (reply->stage == READING_OVER)
        return REPLY_WHOLE;
    return reply_fail(reply, reply->stage == READING_HEAD ? "the connection was closed before the end of the header"
                                                    : "the connection was closed before the end of the body");
}
