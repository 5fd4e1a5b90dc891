/*
 * Variables of the response: status, bytes, times, and the transmission path. Most are final only after the response
 * was sent, in the access log.
 */
#include "server/variables.h"

#include "base/saturate.h"
#include "server/connection.h"

#define ABSENT ((struct str){NULL, 0})

static struct str get_response_status(const void *subject, struct str parameter, struct arena *arena)
{
    return arena_printf(arena, "%03d", request_status(request_state_of(subject)));
}

static struct str get_bytes_sent(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return arena_print_number(arena, x->response.bytes_sent);
}

static struct str get_body_bytes_sent(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return arena_print_number(arena, x->response.body_bytes_sent);
}

static struct str get_bytes_zero_copy(const void *subject, struct str parameter, struct arena *arena)
{
    return arena_print_number(arena, request_state_of(subject)->zero_copy);
}

static struct str get_request_time(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;
    uint64_t now_us = request_state_of(x)->worker->loop.clock.monotonic_us;

    return arena_print_seconds(arena, u64_sub_sat(now_us, x->started_us));
}

static struct str get_request_completion(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return x->response.head_sent && !x->cancelled ? STR("OK") : STR("");
}

/* Reads the head as sent: the session adds fields of its own and omits some. */
static struct str header_of_head(struct str head, struct str parameter, struct arena *arena)
{
    struct headers sent = {0};

    str_cut(&head, '\r');
    while (head.length > sizeof("\n\r\n") - 1) {
        struct str line = str_skip(str_cut(&head, '\r'), 1);
        struct str name = str_cut(&line, ':');
        struct str value = str_trim(line);

        if (headers_add(&sent, arena, name, value) < 0)
            return ABSENT;
    }
    return variable_of_headers(&sent, parameter, arena);
}

static struct str get_sent_http(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    if (x->response.head.data)
        return header_of_head(x->response.head, parameter, arena);
    return variable_of_headers(&x->response.headers, parameter, arena);
}

/* As in nginx, the value has no charset in `map` and `expires`, and is as sent in the access log. */
static struct str get_sent_http_content_type(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;
    struct str type = get_sent_http(subject, STR("content_type"), arena);
    ssize_t at = str_search(type, STR("; charset="));

    if (x->response.head.data || at < 0 || !str_equal(type, request_state_of(x)->response_type))
        return type;
    return str_slice(type, 0, (size_t)at);
}

/* Before the head is written, returns the length of the body. */
static struct str get_sent_http_content_length(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;
    const struct body *body = x->response.body;

    if (x->response.head.data)
        return header_of_head(x->response.head, STR("content_length"), arena);
    if (!body || body->length == BODY_LENGTH_UNKNOWN)
        return ABSENT;
    return arena_print_number(arena, x->response.body_bytes_sent + body->length);
}

static struct str get_tls_path(const void *subject, struct str parameter, struct arena *arena)
{
    return str_from(wire_path_name(request_state_of(subject)->tls_path));
}

static struct str get_tls_path_reason(const void *subject, struct str parameter, struct arena *arena)
{
    return str_from(wire_reason_name(request_state_of(subject)->tls_reason));
}

static const struct variable variables[] = {
    {"body_bytes_sent", false, get_body_bytes_sent, .late = true, .type = "bytes",
     .help = "Bytes of the body that were sent."},
    {"bytes_sent", false, get_bytes_sent, .late = true, .type = "bytes",
     .help = "Bytes that were sent to the client."},
    {"bytes_zero_copy", false, get_bytes_zero_copy, .late = true, .type = "bytes",
     .help = "Bytes sent from a file or a pipe to the socket without a copy in user space."},
    {"request_completion", false, get_request_completion, .late = true, .type = "text",
     .help = "\"OK\" if the response was sent completely, else empty."},
    {"request_time", false, get_request_time, .late = true, .type = "seconds",
     .help = "Time since the first byte of the request, with milliseconds."},
    {"sent_http_", true, get_sent_http, .type = "text",
     .help = "Header field of the response with that name, as in $http_."},
    {"sent_http_content_length", false, get_sent_http_content_length, .type = "number",
     .help = "Content-Length of the response."},
    {"sent_http_content_type", false, get_sent_http_content_type, .type = "text",
     .help = "Content-Type of the response; before the head is written (expires, add_header) without the charset "
             "parameter that this server adds."},
    {"status", false, get_response_status, .type = "number",
     .help = "Status of the response."},
    {"tls_path", false, get_tls_path, .late = true, .type = "text",
     .help = "Transmission path of the response: plain, user, openssl, ktls-send, ktls-sendfile and others."},
    {"tls_path_reason", false, get_tls_path_reason, .late = true, .type = "text",
     .help = "The reason for $tls_path."},
};

const struct variable_table variables_response = {
    variables,
    sizeof(variables) / sizeof(variables[0]),
    NULL,
};
