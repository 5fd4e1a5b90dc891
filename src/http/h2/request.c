/*
 * Validates and stores fields as they are decoded; meaning and framing are determined at the end.
 */
#include "http/h2/request.h"

#include "http/h1_parse.h"
#include "http/h2/field_rules.h"
#include "http/url.h"

#include <errno.h>

struct h2_request_reader h2_request_start(struct exchange *x, const struct session_settings *settings, bool trailers)
{
    return (struct h2_request_reader){
        .x = x,
        .headers = trailers ? &x->request.trailers : &x->request.headers,
        .settings = settings,
        .trailers = trailers,
    };
}

static struct str copy_text(struct h2_request_reader *reader, struct str text)
{
    struct str copy = arena_copy(&reader->x->arena, text);

    if (!copy.data)
        reader->fault = -ENOMEM;
    return copy;
}

static void store_pseudo(struct h2_request_reader *reader, struct str name, struct str value)
{
    static const struct {
        struct str name;
        enum h2_pseudo bit;
        size_t place;
    } pseudos[] = {
        {{":method", 7}, H2_METHOD, offsetof(struct h2_request_reader, method)},
        {{":scheme", 7}, H2_SCHEME, offsetof(struct h2_request_reader, scheme)},
        {{":authority", 10}, H2_AUTHORITY, offsetof(struct h2_request_reader, authority)},
        {{":path", 5}, H2_PATH, offsetof(struct h2_request_reader, path)},
        {{":protocol", 9}, H2_PROTOCOL, offsetof(struct h2_request_reader, protocol)},
    };

    reader->fault = -EBADMSG;
    if (reader->regular || reader->trailers)
        return;
    if (str_equal(name, STR(":protocol")) && !reader->settings->http2.connect_protocol) /* not offered (RFC 8441 3) */
        return;
    for (size_t i = 0; i < sizeof pseudos / sizeof pseudos[0]; i++) {
        if (!str_equal(name, pseudos[i].name) || (reader->seen & pseudos[i].bit))
            continue;
        reader->seen |= (uint8_t)pseudos[i].bit;
        reader->fault = 0;
        *(struct str *)(void *)((char *)reader + pseudos[i].place) = copy_text(reader, value);
        return;
    }
}

/* As in HTTP/1: a CGI application cannot distinguish "_" from "-" in names. */
static bool is_dropped(const struct h2_request_reader *reader, struct str name)
{
    return str_find(name, '_') >= 0 && (!reader->settings->underscores_in_headers || header_imitates(name));
}

static void store_field(struct h2_request_reader *reader, struct str name, struct str value)
{
    struct str parts[2];

    reader->regular = true;
    if (!h2_field_is_name(name) || h2_field_is_connection_specific(name, value)) {
        reader->fault = -EBADMSG;
        return;
    }
    if (is_dropped(reader, name))
        return;
    parts[0] = copy_text(reader, name);
    parts[1] = copy_text(reader, value);
    if (!reader->fault && headers_add(reader->headers, &reader->x->arena, parts[0], parts[1]) < 0)
        reader->fault = -ENOMEM;
}

/* The limits of large_client_header_buffers and the number of fields. */
static int limit_status(const struct h2_request_reader *reader, struct str name, struct str value)
{
    if (!value.data || name.length + value.length + 4 > h1_longest_line(reader->settings))
        return str_equal(name, STR(":path")) ? 414 : 431;
    return reader->bytes > reader->settings->head_max || reader->fields > reader->settings->max_headers ? 431 : 0;
}

/* Stores the method of a request that is already rejected: the response to HEAD has no body. */
static void store_late_method(struct h2_request_reader *reader, struct str value)
{
    int status = reader->fault;

    if (!value.data || value.length > h1_longest_line(reader->settings))
        return;
    store_pseudo(reader, STR(":method"), value);
    if (!reader->fault)
        reader->fault = status;
}

void h2_request_field(struct h2_request_reader *reader, struct str name, struct str value)
{
    bool pseudo = name.length && name.data[0] == ':';

    reader->bytes += name.length + value.length + 4;
    reader->fields += !pseudo || str_equal(name, STR(":authority")); /* Host in HTTP/1.1 */
    if (reader->fault > 0 && str_equal(name, STR(":method")))
        store_late_method(reader, value);
    if (reader->fault)
        return;
    reader->fault = limit_status(reader, name, value);
    if (reader->fault)
        return;
    if (!h2_field_is_value(value))
        reader->fault = -EBADMSG;
    else if (pseudo)
        store_pseudo(reader, name, value);
    else
        store_field(reader, name, value);
}

/* For $request and the log. */
static int set_line(struct request *request, struct arena *arena)
{
    struct str method = request->tunnel ? STR("CONNECT") : request->method_name;
    const struct str parts[] = {method, STR(" "), request->target, STR(" HTTP/2.0")};

    request->line = arena_join(arena, parts, sizeof parts / sizeof parts[0]);
    return request->line.data ? 0 : -ENOMEM;
}

static int read_method(struct h2_request_reader *reader)
{
    struct request *request = &reader->x->request;

    if (!(reader->seen & H2_METHOD) || !h1_is_token(reader->method))
        return -EBADMSG;
    request->method_name = reader->method;
    request->method = method_parse(reader->method);
    return 0;
}

/*
 * Extended CONNECT becomes the GET with Upgrade of HTTP/1.1 (RFC 8441 5), so that the same rules and modules apply.
 * Only WebSocket has such an equivalent. 0, 501 or -ENOMEM.
 */
static int translate_connect(struct h2_request_reader *reader)
{
    struct request *request = &reader->x->request;
    struct headers *headers = &request->headers;
    struct arena *arena = &reader->x->arena;

    if (!str_equal_nocase(reader->protocol, STR("websocket")))
        return 501;
    request->content_length = 0;
    request->method = METHOD_GET;
    request->method_name = STR("GET");
    request->tunnel = body_empty();
    headers_remove(headers, STR("sec-websocket-key")); /* only the HTTP/1.1 handshake uses it */
    if (headers_add(headers, arena, STR("connection"), STR("upgrade")) < 0)
        return -ENOMEM;
    return headers_add(headers, arena, STR("upgrade"), STR("websocket"));
}

/*
 * True unless the method is CONNECT, :protocol is a token, and there is no Content-Length: the protocol's bytes
 * replace a body.
 */
static bool is_connect_malformed(const struct h2_request_reader *reader)
{
    const struct request *request = &reader->x->request;

    return request->method != METHOD_CONNECT || !h1_is_token(reader->protocol) ||
           headers_find(&request->headers, STR("content-length"));
}

/* Rejects CONNECT without :protocol, which has no :scheme and no :path (RFC 9113 8.5). */
static int reject_connect(const struct h2_request_reader *reader)
{
    struct request *request = &reader->x->request;

    if ((reader->seen & (H2_SCHEME | H2_PATH)) || !(reader->seen & H2_AUTHORITY))
        return -EBADMSG;
    request->target = reader->authority;
    return 501;
}

/* RFC 3986 3.1. */
static bool is_scheme(struct str scheme)
{
    for (size_t i = 0; i < scheme.length; i++) {
        char c = str_lower(scheme.data[i]);

        if (!(c >= 'a' && c <= 'z') && (i == 0 || !((c >= '0' && c <= '9') || memchr("+-.", c, 3))))
            return false;
    }
    return scheme.length > 0;
}

static int read_target(const struct h2_request_reader *reader)
{
    struct request *request = &reader->x->request;
    struct url_target target;

    if (!is_scheme(reader->scheme) || !(reader->seen & H2_PATH) || str_empty(reader->path))
        return -EBADMSG;
    request->target = reader->path;
    if (reader->path.data[0] != '/' && !(request->method == METHOD_OPTIONS && str_equal(reader->path, STR("*"))))
        return -EBADMSG;
    if (str_find(reader->path, ' ') >= 0 || str_find(reader->path, '\t') >= 0)
        return -EBADMSG;
    if (url_target_parse(&reader->x->arena, reader->path, reader->settings->merge_slashes, &target) < 0)
        return 400;
    request->target = target.target;
    request->path = target.path;
    request->query = target.query;
    return 0;
}

/*
 * Sets host and port. :authority becomes the Host field of a request that has none; two different ones are rejected
 * (RFC 9113 8.3.1).
 */
static int read_host(struct h2_request_reader *reader)
{
    struct request *request = &reader->x->request;
    struct arena *arena = &reader->x->arena;
    const struct header *host = headers_find(&request->headers, STR("host"));
    struct str authority = reader->seen & H2_AUTHORITY ? reader->authority : (struct str){NULL, 0};

    if (host && headers_next(&request->headers, STR("host"), host))
        return 400;
    if (host && authority.data && !str_equal_nocase(host->value, authority))
        return 400;
    if (!host && !authority.data)
        return 400;
    if (!host && headers_add(&request->headers, arena, STR("host"), authority) < 0)
        return -ENOMEM;
    return url_host_parse(arena, host ? host->value : authority, &request->host, &request->port) < 0 ? 400 : 0;
}

/* Joins several Cookie fields into one (RFC 9113 8.2.3). */
static int join_cookies(struct h2_request_reader *reader)
{
    struct headers *headers = &reader->x->request.headers;
    struct arena *arena = &reader->x->arena;
    const struct header *cookie = headers_find(headers, STR("cookie"));
    struct str joined;

    if (!cookie || !headers_next(headers, STR("cookie"), cookie))
        return 0;
    if (headers_join(headers, str_equal_nocase, STR("cookie"), STR("; "), arena, &joined) < 0)
        return -ENOMEM;
    return headers_set(headers, arena, STR("cookie"), joined);
}

/* The length of the body; a wrong Content-Length is malformed (RFC 9113 8.1.1). */
static int read_length(struct h2_request_reader *reader, bool end_stream)
{
    struct request *request = &reader->x->request;
    const struct header *field = headers_find(&request->headers, STR("content-length"));
    uint64_t length;
    int error;

    request->content_length = end_stream ? 0 : BODY_LENGTH_UNKNOWN;
    if (!field)
        return 0;
    error = str_to_u64(field->value, &length);
    if (error == -ERANGE || (!error && length > INT64_MAX))
        return 413;
    if (error || headers_next(&request->headers, STR("content-length"), field) || (end_stream && length))
        return -EBADMSG;
    request->content_length = length;
    return 0;
}

static int read_expect(struct request *request)
{
    const struct header *expect = headers_find(&request->headers, STR("expect"));

    if (!expect)
        return 0;
    if (!str_equal_nocase(expect->value, STR("100-continue")) ||
        headers_next(&request->headers, STR("expect"), expect))
        return 417;
    request->expects_continue = request->content_length > 0;
    return 0;
}

/* Checks method and length first: a malformed request resets the stream and gets no response. */
static int read_request(struct h2_request_reader *reader, bool end_stream)
{
    struct request *request = &reader->x->request;
    int length_fault;
    int error = read_method(reader);

    if (error)
        return error;
    if ((reader->seen & H2_PROTOCOL) && is_connect_malformed(reader))
        return -EBADMSG;
    if (request->method == METHOD_CONNECT && !(reader->seen & H2_PROTOCOL))
        return reject_connect(reader);
    length_fault = read_length(reader, end_stream);
    if (length_fault == -EBADMSG)
        return length_fault;
    error = read_target(reader);
    if (!error)
        error = read_host(reader);
    if (!error)
        error = join_cookies(reader);
    if (!error)
        error = length_fault;
    if (!error)
        error = read_expect(request);
    return error || request->method != METHOD_CONNECT ? error : translate_connect(reader);
}

int h2_request_finish(struct h2_request_reader *reader, bool end_stream)
{
    struct request *request = &reader->x->request;
    int result;

    request->version = HTTP_2;
    request->bytes = reader->bytes;
    if (reader->fault == -EBADMSG || reader->fault == -ENOMEM)
        return reader->fault;
    result = reader->fault ? read_method(reader) : read_request(reader, end_stream);
    if (str_empty(request->target))
        request->target = str_or_empty(reader->path);
    if (result != -EBADMSG && set_line(request, &reader->x->arena) < 0)
        return -ENOMEM;
    return reader->fault && result == 0 ? reader->fault : result;
}

int h2_trailers_finish(const struct h2_request_reader *reader)
{
    return reader->fault;
}
