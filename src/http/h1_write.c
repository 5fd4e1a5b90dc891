/*
 * Measures a head, allocates memory of that size, and copies the fields into it: no formatting, no growing buffer.
 */
#include "http/h1_request.h"

#include "http/date.h"
#include "http/h1_parse.h"
#include "http/sendable.h"

#include <errno.h>


/* Fields written by the session. */
enum own_field { FIELD_OTHER, FIELD_FRAMING, FIELD_DATE, FIELD_SERVER, OWN_FIELDS };

static enum own_field field_of(struct str name)
{
    switch (name.length) {
    case 4:
        return str_equal_nocase(name, STR("Date")) ? FIELD_DATE : FIELD_OTHER;
    case 6:
        return str_equal_nocase(name, STR("Server")) ? FIELD_SERVER : FIELD_OTHER;
    case 10:
        return str_equal_nocase(name, STR("Connection")) || str_equal_nocase(name, STR("Keep-Alive"))
                   ? FIELD_FRAMING
                   : FIELD_OTHER;
    case 14:
        return str_equal_nocase(name, STR("Content-Length")) ? FIELD_FRAMING : FIELD_OTHER;
    case 17:
        return str_equal_nocase(name, STR("Transfer-Encoding")) ? FIELD_FRAMING : FIELD_OTHER;
    default:
        return FIELD_OTHER;
    }
}

enum h1_framing h1_framing_of(const struct exchange *x)
{
    const struct response *response = &x->response;

    if (response->status == 101)
        return FRAMING_CLOSE;
    if (x->request.method == METHOD_HEAD || status_bodiless(response->status))
        return FRAMING_NONE;
    if (!response->body || response->body->length != BODY_LENGTH_UNKNOWN)
        return FRAMING_LENGTH;
    return x->request.version >= HTTP_1_1 ? FRAMING_CHUNKED : FRAMING_CLOSE;
}

static char *write_str(char *at, struct str s)
{
    if (s.length)
        memcpy(at, s.data, s.length);
    return at + s.length;
}

static char *write_field(char *at, struct str name, struct str value)
{
    at = write_str(at, name);
    at = write_str(at, STR(": "));
    at = write_str(at, value);
    return write_str(at, STR("\r\n"));
}

static size_t field_length(struct str name, struct str value)
{
    return name.length + value.length + 4;
}

static struct str reason_of(const struct response *response)
{
    if (str_empty(response->reason.text) || response->reason.status != response->status)
        return status_reason(response->status);
    return response->reason.text;
}

static char *write_status_line(char *at, int status, struct str reason)
{
    at = write_str(at, STR("HTTP/1.1 "));
    at = str_write_u64(at, (uint64_t)status);
    at = write_str(at, STR(" "));
    at = write_str(at, reason);
    return write_str(at, STR("\r\n"));
}

/* Upper bound of the formatted fields, and the session's own fields among them. */
struct measure {
    size_t length;
    bool has[OWN_FIELDS];
};

/* 0; -EINVAL with the first field that must not be sent. */
static int measure_fields(const struct headers *headers, struct measure *out_measure, struct str *out_fault)
{
    *out_measure = (struct measure){0};
    for (unsigned i = 0; i < headers->count; i++) {
        const struct header *field = &headers->items[i];

        if (!h1_is_token(field->name) || !h1_is_value(field->value)) {
            *out_fault = field->name;
            return -EINVAL;
        }
        out_measure->has[field_of(field->name)] = true;
        out_measure->length += field_length(field->name, field->value);
    }
    return 0;
}

/*
 * Measures the fields. Control bytes in values are replaced, and *out_fault names the last such field; a name that
 * is not a token is -EINVAL. 0, -EINVAL or -ENOMEM.
 */
static int check_fields(struct headers *headers, struct arena *arena, struct measure *out_measure,
                        struct str *out_fault)
{
    int error;

    if (measure_fields(headers, out_measure, out_fault) == 0)
        return 0;
    error = headers_make_sendable(headers, arena, out_fault);
    return error ? error : measure_fields(headers, out_measure, out_fault);
}

static char *write_fields(char *at, const struct headers *headers, const struct measure *measure)
{
    for (unsigned i = 0; i < headers->count; i++) {
        const struct header *field = &headers->items[i];

        if (!measure->has[FIELD_FRAMING] || field_of(field->name) != FIELD_FRAMING)
            at = write_field(at, field->name, field->value);
    }
    return at;
}

/* Writes the framing fields. HEAD gets those of GET, if known (RFC 9110 9.3.2). */
static char *write_framing(char *at, const struct exchange *x, enum h1_framing framing)
{
    const struct body *body = x->response.body;
    uint64_t length = body ? body->length : 0;

    if (framing == FRAMING_CHUNKED)
        return write_str(at, STR("Transfer-Encoding: chunked\r\n"));
    if (framing == FRAMING_CLOSE || status_bodiless(x->response.status) || length == BODY_LENGTH_UNKNOWN ||
        (framing == FRAMING_NONE && !body))
        return at;
    at = write_str(at, STR("Content-Length: "));
    at = str_write_u64(at, length);
    return write_str(at, STR("\r\n"));
}

/* HTTP/1.1 persists by default, 1.0 closes by default (RFC 9112 9.3). */
static char *write_connection(char *at, const struct exchange *x, bool keepalive)
{
    if (x->response.status == 101)
        return write_str(at, STR("Connection: upgrade\r\n"));
    if (!keepalive)
        return write_str(at, STR("Connection: close\r\n"));
    return x->request.version >= HTTP_1_1 ? at : write_str(at, STR("Connection: keep-alive\r\n"));
}

int h1_write_head(struct exchange *x, const struct session_settings *settings, int64_t now,
                  enum h1_framing framing, bool keepalive, struct str *out_head)
{
    struct response *response = &x->response;
    struct str reason = reason_of(response);
    struct measure measure;
    char date[DATE_LENGTH + 1];
    size_t length;
    char *head;
    char *at;
    int error;

    if ((response->status < 200 && response->status != 101) || response->status > 999) {
        x->response.fault = STR("an invalid status");
        return -EINVAL;
    }
    if (!h1_is_value(reason)) {
        x->response.fault = STR("the reason phrase");
        return -EINVAL;
    }
    error = check_fields(&response->headers, &x->arena, &measure, &response->fault);
    if (error < 0)
        return error;
    length = measure.length + sizeof("HTTP/1.1 999 \r\n") + reason.length + sizeof("Connection: keep-alive\r\n") +
              sizeof("Transfer-Encoding: chunked\r\n") + STR_U64_DIGITS + sizeof("Date: \r\n") + DATE_LENGTH +
              field_length(STR("Server"), settings->server_header) + sizeof("\r\n");
    at = head = arena_alloc(&x->arena, length);
    if (!head)
        return -ENOMEM;
    at = write_status_line(at, response->status, reason);
    if (!measure.has[FIELD_SERVER] && settings->server_header.length)
        at = write_field(at, STR("Server"), settings->server_header);
    if (!measure.has[FIELD_DATE])
        at = write_field(at, STR("Date"), date_format(now, date));
    at = write_fields(at, &response->headers, &measure);
    at = write_framing(at, x, framing);
    at = write_connection(at, x, keepalive);
    at = write_str(at, STR("\r\n"));
    *out_head = str_of(head, (size_t)(at - head));
    return 0;
}

int h1_write_interim(struct buffer *into, int status, const struct headers *headers)
{
    static const struct headers none = {0};
    const struct headers *fields = headers ? headers : &none;
    struct str reason = status_reason(status);
    struct measure measure;
    struct str fault;
    char *at;
    int error;

    /* 101 is a final response */
    if (status < 100 || status > 199 || status == 101 ||
        measure_fields(fields, &measure, &fault) != 0)
        return -EINVAL;
    error = buffer_reserve(into, measure.length + sizeof("HTTP/1.1 999 \r\n\r\n") + reason.length);
    if (error < 0)
        return error;
    at = write_status_line(into->data + into->length, status, reason);
    at = write_fields(at, fields, &measure);
    at = write_str(at, STR("\r\n"));
    into->length = (size_t)(at - into->data);
    return 0;
}

/* True for visible bytes only: spaces and control bytes could split the request line. */
static bool is_target(struct str target)
{
    for (size_t i = 0; i < target.length; i++) {
        if ((unsigned char)target.data[i] <= ' ' || target.data[i] == 0x7f)
            return false;
    }
    return target.length > 0;
}

static char *write_request_framing(char *at, const struct h1_request_head *head)
{
    if (head->content_length == BODY_LENGTH_UNKNOWN)
        return write_str(at, STR("Transfer-Encoding: chunked\r\n"));
    if (!head->send_content_length)
        return at;
    at = write_str(at, STR("Content-Length: "));
    at = str_write_u64(at, head->content_length);
    return write_str(at, STR("\r\n"));
}

/* As h1_check_request; with 0, *measure has the size of the fields. */
static int check_request(struct arena *arena, const struct h1_request_head *head, struct measure *measure,
                         struct str *out_fault)
{
    *out_fault = STR("the request line");
    if (!h1_is_token(head->method) || !is_target(head->target) || !h1_is_value(head->connection))
        return -EINVAL;
    *out_fault = STR("");
    return check_fields(head->headers, arena, measure, out_fault);
}

int h1_check_request(struct arena *arena, const struct h1_request_head *head, struct str *out_fault)
{
    struct measure measure;

    return check_request(arena, head, &measure, out_fault);
}

int h1_write_request(struct arena *arena, const struct h1_request_head *head, struct str *out_fault,
                     struct str *out_head)
{
    struct measure measure;
    size_t length;
    char *bytes;
    char *at;
    int error = check_request(arena, head, &measure, out_fault);

    if (error < 0)
        return error;
    length = measure.length + head->method.length + head->target.length + sizeof("  HTTP/1.1\r\n") +
              field_length(STR("Connection"), head->connection) + sizeof("Transfer-Encoding: chunked\r\n") +
              STR_U64_DIGITS + sizeof("\r\n");
    at = bytes = arena_alloc(arena, length);
    if (!bytes)
        return -ENOMEM;
    at = write_str(at, head->method);
    at = write_str(at, STR(" "));
    at = write_str(at, head->target);
    at = write_str(at, STR(" HTTP/1.1\r\n"));
    at = write_fields(at, head->headers, &measure);
    at = write_request_framing(at, head);
    if (head->connection.length)
        at = write_field(at, STR("Connection"), head->connection);
    at = write_str(at, STR("\r\n"));
    *out_head = str_of(bytes, (size_t)(at - bytes));
    return 0;
}

int h1_write_last_chunk(struct arena *arena, struct headers *trailers, struct str *out_fault,
                        struct str *out_bytes)
{
    struct measure measure;
    char *bytes;
    char *at;
    int error;

    /* Too late for a 500: a trailer with an invalid name is dropped. */
    while ((error = check_fields(trailers, arena, &measure, out_fault)) == -EINVAL)
        headers_remove(trailers, *out_fault);
    if (error < 0)
        return error;
    if (trailers->count == 0) {
        *out_bytes = STR("0\r\n\r\n");
        return 0;
    }
    at = bytes = arena_alloc(arena, measure.length + sizeof("0\r\n\r\n"));
    if (!bytes)
        return -ENOMEM;
    at = write_str(at, STR("0\r\n"));
    at = write_fields(at, trailers, &measure);
    at = write_str(at, STR("\r\n"));
    *out_bytes = str_of(bytes, (size_t)(at - bytes));
    return 0;
}

struct str h1_write_chunk_line(uint64_t size, char *into)
{
    unsigned digits = 1;

    while (digits < 16 && size >> (4 * digits))
        digits++;
    for (unsigned i = 0; i < digits; i++)
        into[i] = "0123456789abcdef"[size >> (4 * (digits - 1 - i)) & 15];
    into[digits] = '\r';
    into[digits + 1] = '\n';
    return str_of(into, digits + 2);
}
