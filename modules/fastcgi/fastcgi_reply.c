/*
 * Parses records and the streams in them. The application is not trusted: every deviation from the specification is
 * rejected.
 */
#include "fastcgi_reply.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "http/connection_options.h"

#include <errno.h>

enum { VERSION = 1, REQUEST_ID = 1 };

void fastcgi_reply_init(struct fastcgi_reply *reply, struct h1_reply *into, struct arena *arena, size_t head_max,
                        bool head)
{
    *reply = (struct fastcgi_reply){.reply = into, .arena = arena, .head_max = head_max, .head = head};
    *into = (struct h1_reply){.version = HTTP_1_1, .content_length = BODY_LENGTH_UNKNOWN};
}

void fastcgi_reply_finish(struct fastcgi_reply *reply)
{
    buffer_finish(&reply->text);
    buffer_finish(&reply->stderr_text);
    reply->failed = true;
}

void fastcgi_write_header(enum fastcgi_kind kind, size_t length, char into[FASTCGI_HEADER])
{
    const char header[FASTCGI_HEADER] = {VERSION,  (char)kind,           0, REQUEST_ID, (char)(length >> 8 & 0xff),
                                         (char)(length & 0xff), 0, 0};

    memcpy(into, header, sizeof(header));
}

static enum h1_reply_step reply_fail(struct fastcgi_reply *reply, const char *fault)
{
    reply->failed = true;
    reply->reply->fault = fault;
    return REPLY_BAD;
}

/* The CGI head. */

static const char *parse_status(struct h1_reply *reply, struct str value)
{
    uint64_t status;

    if (reply->status != 0)
        return "more than one Status";
    if (value.length < 3 || str_to_u64(str_slice(value, 0, 3), &status) < 0 || status < 200 || status > 599 ||
        (value.length > 3 && value.data[3] != ' '))
        return "an invalid Status";
    reply->status = (int)status;
    reply->reason = str_skip(value, 4);
    return NULL;
}

static const char *parse_length(struct h1_reply *reply, struct str value)
{
    if (reply->content_length != BODY_LENGTH_UNKNOWN)
        return "more than one Content-Length";
    if (str_to_u64(value, &reply->content_length) < 0 || reply->content_length > INT64_MAX)
        return "an invalid Content-Length";
    return NULL;
}

static const char *parse_field(struct fastcgi_reply *reply, struct str line)
{
    struct headers *headers = &reply->reply->headers;
    ssize_t colon = str_find(line, ':');
    struct str name = str_slice(line, 0, colon < 0 ? 0 : (size_t)colon);
    struct str value = str_trim(str_skip(line, (size_t)(colon + 1)));

    if (!h1_is_token(name) || !h1_is_value(value) || headers->count >= LIMIT_HEADERS)
        return "an invalid header field";
    if (str_equal_nocase(name, STR("Status")))
        return parse_status(reply->reply, value);
    if (str_equal_nocase(name, STR("Content-Length"))) {
        const char *fault = parse_length(reply->reply, value);

        if (fault)
            return fault;
    }
    return headers_add(headers, reply->arena, name, value) < 0 ? "out of memory" : NULL;
}

static enum h1_reply_step parse_head(struct fastcgi_reply *reply, struct str head)
{
    struct h1_reply *into = reply->reply;
    struct str text = arena_copy(reply->arena, head);
    struct connection_options options;
    const char *fault = NULL;

    if (!text.data)
        return REPLY_NO_MEMORY;
    while (!fault && text.length > 0) {
        struct str line = str_cut(&text, '\n');

        if (str_ends(line, STR("\r")))
            line.length--;
        if (line.length == 0)
            break;
        fault = parse_field(reply, line);
    }
    if (!fault && connection_options_read(&into->headers, &options) < 0)
        fault = "too many options in Connection";
    if (fault)
        return reply_fail(reply, fault);
    if (into->status == 0)
        into->status = headers_find(&into->headers, STR("Location")) ? 302 : 200;
    into->bodiless = reply->head || into->status == 204 || into->status == 304;
    reply->left = into->content_length;
    reply->has_head = true;
    return REPLY_HEAD;
}

/* Returns the length of the CGI head with its empty line; 0: incomplete. Lines end with LF or CRLF. */
static size_t head_end(struct fastcgi_reply *reply)
{
    struct str text = buffer_str(&reply->text);

    while (reply->seen < text.length) {
        size_t line = reply->line, at = reply->seen++;

        if (text.data[at] != '\n')
            continue;
        if (at == line || (at == line + 1 && text.data[line] == '\r'))
            return at + 1;
        reply->line = at + 1;
    }
    return 0;
}

static void consume_content(struct fastcgi_reply *reply, struct str *in, size_t count)
{
    *in = str_skip(*in, count);
    reply->content = size_sub_sat(reply->content, count);
}

static enum h1_reply_step read_head(struct fastcgi_reply *reply, struct str *in, struct str part)
{
    size_t before = reply->text.length;
    size_t room = size_sub_sat(reply->head_max, before);
    enum h1_reply_step step;
    size_t end;

    if (buffer_append(&reply->text, str_slice(part, 0, room)) < 0)
        return REPLY_NO_MEMORY;
    end = head_end(reply);
    if (end == 0 && reply->text.length == reply->head_max)
        return reply_fail(reply, "too big header");
    consume_content(reply, in, end ? size_sub_sat(end, before) : part.length);
    if (end == 0)
        return REPLY_MORE;
    step = parse_head(reply, str_slice(buffer_str(&reply->text), 0, end));
    buffer_finish(&reply->text);
    return step;
}

/* Passes on a part of the body. REPLY_MORE: the part was discarded. */
static enum h1_reply_step read_body(struct fastcgi_reply *reply, struct str *in, struct str part,
                                    struct str *out_part)
{
    consume_content(reply, in, part.length);
    if (reply->reply->bodiless)
        return REPLY_MORE;
    if (reply->reply->content_length != BODY_LENGTH_UNKNOWN) {
        if (part.length > reply->left)
            return reply_fail(reply, "a body longer than its Content-Length");
        reply->left -= part.length;
    }
    *out_part = part;
    return REPLY_PART;
}

/* Records. */

static enum h1_reply_step read_stderr(struct fastcgi_reply *reply, struct str *in, struct str part)
{
    size_t room = size_sub_sat(LIMIT_FASTCGI_STDERR, reply->stderr_text.length);

    consume_content(reply, in, part.length);
    return buffer_append(&reply->stderr_text, str_slice(part, 0, room)) < 0 ? REPLY_NO_MEMORY : REPLY_MORE;
}

static enum h1_reply_step read_end(struct fastcgi_reply *reply, struct str *in, struct str part)
{
    for (size_t i = 0; i < part.length; i++)
        reply->record[FASTCGI_HEADER - reply->content + i] = (unsigned char)part.data[i];
    consume_content(reply, in, part.length);
    if (reply->content > 0)
        return REPLY_MORE;
    if (reply->record[4] != 0)
        return reply_fail(reply, "FastCGI rejected the request");
    if (!reply->has_head)
        return reply_fail(reply, "an end without a header");
    if (!reply->reply->bodiless && reply->reply->content_length != BODY_LENGTH_UNKNOWN && reply->left > 0)
        return reply_fail(reply, "a body shorter than its Content-Length");
    reply->ended = true;
    return REPLY_MORE;
}

static enum h1_reply_step read_content(struct fastcgi_reply *reply, struct str *in, struct str *out_part)
{
    struct str part = str_slice(*in, 0, reply->content);

    if (reply->kind == FASTCGI_STDERR)
        return read_stderr(reply, in, part);
    if (reply->kind == FASTCGI_END)
        return read_end(reply, in, part);
    return reply->has_head ? read_body(reply, in, part, out_part) : read_head(reply, in, part);
}

static const char *check_header(struct fastcgi_reply *reply)
{
    unsigned kind = reply->kind = reply->record[1];

    if (reply->record[0] != VERSION)
        return "no FastCGI";
    if (kind != FASTCGI_STDOUT && kind != FASTCGI_STDERR && kind != FASTCGI_END)
        return "a record of unknown type";
    if (reply->record[2] != 0 || reply->record[3] != REQUEST_ID)
        return "a record of another request";
    reply->content = (size_t)reply->record[4] << 8 | reply->record[5];
    reply->padding = reply->record[6];
    if (kind == FASTCGI_END && reply->content != FASTCGI_HEADER)
        return "an invalid FCGI_END_REQUEST record";
    if (kind == FASTCGI_STDOUT && reply->stdout_ended)
        return "output after its end";
    if (kind == FASTCGI_STDOUT && reply->content == 0)
        reply->stdout_ended = true;
    return NULL;
}

static enum h1_reply_step read_header(struct fastcgi_reply *reply, struct str *in)
{
    const char *fault;

    while (in->length > 0 && reply->record_length < FASTCGI_HEADER) {
        reply->record[reply->record_length++] = (unsigned char)in->data[0];
        *in = str_skip(*in, 1);
    }
    if (reply->record_length < FASTCGI_HEADER)
        return REPLY_MORE;
    fault = check_header(reply);
    reply->in_content = true;
    return fault ? reply_fail(reply, fault) : REPLY_MORE;
}

static void skip_padding(struct fastcgi_reply *reply, struct str *in)
{
    size_t count = reply->padding < in->length ? reply->padding : in->length;

    *in = str_skip(*in, count);
    reply->padding -= count;
}

/* Processes one step at the front of *in, which is not empty. */
static enum h1_reply_step read_reply_record(struct fastcgi_reply *reply, struct str *in, struct str *out_part)
{
    if (!reply->in_content)
        return read_header(reply, in);
    if (reply->content > 0)
        return read_content(reply, in, out_part);
    skip_padding(reply, in);
    return REPLY_MORE;
}

enum h1_reply_step fastcgi_reply_read(struct fastcgi_reply *reply, struct str *in, struct str *out_part)
{
    enum h1_reply_step step = reply->failed ? REPLY_BAD : REPLY_MORE;

    while (step == REPLY_MORE) {
        if (reply->in_content && reply->content == 0 && reply->padding == 0) {
            reply->in_content = false;
            reply->record_length = 0;
        }
        if (reply->ended && !reply->in_content)
            return REPLY_WHOLE;
        if (str_empty(*in))
            return REPLY_MORE;
        step = read_reply_record(reply, in, out_part);
    }
    return step;
}
