/*
 * Variables of the request as received and as rewritten. Values point into the request where possible. Variables of
 * the connection and of the response have files of their own.
 */
#include "server/variables.h"

#include "base/base64.h"
#include "base/limits.h"
#include "http/pairs.h"
#include "server/connection.h"
#include "site/subjects.h"

#include <stdlib.h>

#define ABSENT ((struct str){NULL, 0})

static struct str get_arg(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return query_find(x->request.query, parameter);
}

static struct str get_args(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return x->request.query;
}

static struct str get_is_args(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return str_empty(x->request.query) ? STR("") : STR("?");
}

static struct str get_cookie(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;
    const struct headers *headers = &x->request.headers;

    for (const struct header *field = headers_find(headers, STR("Cookie")); field;
         field = headers_next(headers, STR("Cookie"), field)) {
        struct str value = cookie_find(field->value, parameter);

        if (value.data)
            return value;
    }
    return ABSENT;
}

static struct str get_http(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return variable_of_headers(&x->request.headers, parameter, arena);
}

static struct str get_content_length(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return headers_value(&x->request.headers, STR("Content-Length"));
}

static struct str get_content_type(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return headers_value(&x->request.headers, STR("Content-Type"));
}

static struct str get_host(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return str_empty(x->request.host) ? request_state_of(x)->server->name : x->request.host;
}

static struct str get_uri(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return x->request.path;
}

static struct str get_request_uri(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return x->request.target;
}

static struct str get_request(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return x->request.line;
}

static struct str get_request_method(const void *subject, struct str parameter, struct arena *arena)
{
    return client_request_state_of(subject)->x->request.method_name;
}

static struct str get_request_length(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return arena_print_number(arena, x->request.bytes);
}

static struct str get_server_protocol(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    switch (x->request.version) {
    case HTTP_1_0:
        return STR("HTTP/1.0");
    case HTTP_1_1:
        return STR("HTTP/1.1");
    case HTTP_2:
        return STR("HTTP/2.0");
    }
    return ABSENT;
}

static struct str get_http2(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    if (x->request.version != HTTP_2)
        return ABSENT;
    return request_state_of(x)->connection->wire.tls ? STR("h2") : STR("h2c");
}

static struct str get_http2_stream_id(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;

    return x->request.stream_id ? arena_printf(arena, "%u", (unsigned)x->request.stream_id) : ABSENT;
}

static struct str get_remote_user(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;
    struct str value = headers_value(&x->request.headers, STR("Authorization"));
    struct str decoded;

    if (!str_equal_nocase(str_slice(value, 0, 6), STR("Basic ")))
        return ABSENT;
    decoded = base64_decode(arena, str_trim(str_skip(value, 6)));
    if (!decoded.data || str_find(decoded, ':') < 0)
        return ABSENT;
    return str_cut(&decoded, ':');
}

static struct str get_request_id(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_request_id(subject);
}

static struct str get_document_root(const void *subject, struct str parameter, struct arena *arena)
{
    return exchange_root(request_state_of(subject)->x);
}

static struct str get_realpath_root(const void *subject, struct str parameter, struct arena *arena)
{
    struct str root = exchange_root(request_state_of(subject)->x);
    struct str terminated = root.data ? arena_copy(arena, root) : root;
    char *real = terminated.data ? realpath(terminated.data, NULL) : NULL;
    struct str result = real ? arena_copy(arena, str_from(real)) : ABSENT;

    free(real);
    return result;
}

static struct str get_request_filename(const void *subject, struct str parameter, struct arena *arena)
{
    const struct exchange *x = subject;
    struct str root, path;

    if (exchange_file(request_state_of(x)->x, x->request.path, &root, &path) < 0)
        return ABSENT;
    while (str_ends(root, STR("/")))
        root.length--;
    return arena_join(arena, (const struct str[]){root, STR("/"), str_or_empty(path)}, 3);
}

static const struct variable variables[] = {
    {"arg_", true, get_arg, .type = "text",
     .help = "Parameter of the query with that name: $arg_id of ?id=7."},
    {"args", false, get_args, .type = "text",
     .help = "Query of the request, without the question mark."},
    {"content_length", false, get_content_length, .type = "number",
     .help = "Content-Length of the request."},
    {"content_type", false, get_content_type, .type = "text",
     .help = "Content-Type of the request."},
    {"cookie_", true, get_cookie, .type = "text",
     .help = "Cookie of the request with that name."},
    {"document_root", false, get_document_root, .type = "path",
     .help = "Directory of the location: root or alias."},
    {"document_uri", false, get_uri, .type = "text",
     .help = "Path of the request, decoded and normalized; the same as $uri."},
    {"host", false, get_host, .type = "text",
     .help = "Host of the request in lower case, without the port; if it is missing, the name of the server."},
    {"http2", false, get_http2, .type = "text",
     .help = "h2 for HTTP/2 over TLS, h2c for HTTP/2 without TLS; empty for HTTP/1."},
    {"http2_stream_id", false, get_http2_stream_id, .type = "number",
     .help = "HTTP/2 stream of the request; empty for HTTP/1."},
    {"http_", true, get_http, .type = "text",
     .help = "Header field of the request with that name, in lower case, with underscores for dashes: "
             "$http_user_agent."},
    {"is_args", false, get_is_args, .type = "text",
     .help = "\"?\" if the request has a query, else empty."},
    {"query_string", false, get_args, .type = "text",
     .help = "Query of the request; the same as $args."},
    {"realpath_root", false, get_realpath_root, .type = "path",
     .help = "Directory of the location with symbolic links resolved."},
    {"remote_user", false, get_remote_user, .type = "text",
     .help = "User name of Authorization: Basic, verified or not."},
    {"request", false, get_request, .type = "text",
     .help = "Request line as received."},
    {"request_filename", false, get_request_filename, .type = "path",
     .help = "Path of the file for the request."},
    {"request_id", false, get_request_id, .type = "text",
     .help = "32 random hexadecimal digits per request."},
    {"request_length", false, get_request_length, .late = true, .type = "bytes",
     .help = "Bytes of the request received so far: line, fields and body."},
    {"request_method", false, get_request_method, .type = "text",
     .help = "Method of the request."},
    {"request_uri", false, get_request_uri, .type = "text",
     .help = "Path and query as received."},
    {"server_protocol", false, get_server_protocol, .type = "text",
     .help = "Protocol of the request: HTTP/1.0, HTTP/1.1, HTTP/2.0."},
    {"uri", false, get_uri, .type = "text",
     .help = "Path of the request, decoded and normalized; internal redirects and rewrite change it."},
};

const struct variable_table variables_core = {
    variables,
    sizeof(variables) / sizeof(variables[0]),
    &variables_connection,
};

/* Built once, before any fork: the modules' tables are linked in front of the core's. */
const struct variable_table *variables_all(void)
{
    static struct variable_table links[LIMIT_MODULES];
    static const struct variable_table *first;

    if (first)
        return first;
    first = &variables_core;
    for (unsigned i = 0; module_table[i] && i < LIMIT_MODULES; i++) {
        if (!module_table[i]->variables)
            continue;
        links[i] = *module_table[i]->variables;
        links[i].next = first;
        first = &links[i];
    }
    return first;
}
