/* Evaluates a request head: target, host, framing, persistence. */
#include "http/connection_options.h"
#include "http/h1_parse.h"
#include "http/url.h"

#include <errno.h>

static int status_of(int error)
{
    return error == -ENOMEM ? 500 : 400;
}

/* CONNECT has the authority-form (RFC 9112 3.2.3) and is not implemented. */
static int reject_connect(struct request *request, struct arena *arena)
{
    int error = url_host_parse(arena, request->target, &request->host, &request->port);

    if (error)
        return status_of(error);
    return request->port ? 501 : 400;
}

/* Parses the four forms of the target (RFC 9112 3.2). *out_authority is that of absolute-form, else empty. */
static int read_target(struct request *request, bool merge_slashes, struct arena *arena,
                       struct str *out_authority)
{
    struct url_target target;
    int error;

    if (request->method == METHOD_CONNECT)
        return reject_connect(request, arena);
    error = url_target_parse(arena, request->target, merge_slashes, &target);
    if (error)
        return status_of(error);
    if (target.asterisk && request->method != METHOD_OPTIONS)
        return 400;
    request->target = target.target;
    request->path = target.path;
    request->query = target.query;
    *out_authority = target.authority;
    /* OPTIONS http://host without a path is OPTIONS * (RFC 9112 3.2.4). */
    if (target.authority.length && request->method == METHOD_OPTIONS && target.bare)
        request->target = request->path = STR("*");
    return 0;
}

/* The fields that determine the length and the host of the message and the persistence of the connection. */
struct framing_fields {
    struct header host, content_length, transfer_encoding, expect;
    unsigned hosts, content_lengths, transfer_encodings, expects, connections;
};

static void record_framing_field(const struct header *field, const char *name, struct header *out_field,
                                 unsigned *count)
{
    if (str_equal_nocase(field->name, str_of(name, field->name.length))) {
        *out_field = *field;
        ++*count;
    }
}

static struct framing_fields find_framing_fields(const struct headers *headers)
{
    struct framing_fields found = {0};
    struct header connection;

    for (unsigned i = 0; i < headers->count; i++) {
        const struct header *field = &headers->items[i];

        switch (field->name.length) {
        case 4:
            record_framing_field(field, "Host", &found.host, &found.hosts);
            break;
        case 6:
            record_framing_field(field, "Expect", &found.expect, &found.expects);
            break;
        case 10:
            record_framing_field(field, "Connection", &connection, &found.connections);
            break;
        case 14:
            record_framing_field(field, "Content-Length", &found.content_length, &found.content_lengths);
            break;
        case 17:
            record_framing_field(field, "Transfer-Encoding", &found.transfer_encoding, &found.transfer_encodings);
            break;
        default:
            break;
        }
    }
    return found;
}

/* Sets the host from absolute-form if present, else from Host, which must be valid in both cases (RFC 9112 3.2.2). */
static int read_host(const struct framing_fields *found, struct str authority, struct request *request,
                     struct arena *arena)
{
    int error = 0;

    if (found->hosts > 1 || (found->hosts == 0 && request->version >= HTTP_1_1))
        return 400;
    if (found->hosts)
        error = url_host_parse(arena, found->host.value, &request->host, &request->port);
    if (!error && authority.length)
        error = url_host_parse(arena, authority, &request->host, &request->port);
    return error ? status_of(error) : 0;
}

/*
 * The status for a Transfer-Encoding other than chunked: 501 if chunked is the last of several codings (RFC 9112
 * 6.1), else 400, since the end of the body is unknown (RFC 9112 6.3).
 */
static int reject_codings(struct str codings)
{
    while (codings.data) {
        struct str coding = str_cut(&codings, ',');
        struct str name = str_trim(str_cut(&coding, ';'));
        bool chunked = str_equal_nocase(name, STR("chunked"));

        if (!h1_is_token(name) || chunked != !codings.data || (chunked && coding.data))
            return 400;
    }
    return 501;
}

/* The body length (RFC 9112 6.3). Ambiguous framing is rejected. */
static int read_framing(const struct framing_fields *found, struct request *request)
{
    uint64_t length;
    int error;

    if (found->transfer_encodings) {
        if (found->transfer_encodings > 1 || found->content_lengths || request->version < HTTP_1_1)
            return 400;
        if (!str_equal_nocase(found->transfer_encoding.value, STR("chunked")))
            return reject_codings(found->transfer_encoding.value);
        request->content_length = BODY_LENGTH_UNKNOWN;
        return 0;
    }
    if (found->content_lengths == 0)
        return 0;
    error = found->content_lengths > 1 ? -EINVAL : str_to_u64(found->content_length.value, &length);
    if (error == -ERANGE || (!error && length > INT64_MAX))
        return 413;
    if (error)
        return 400;
    request->content_length = length;
    return 0;
}

static int read_expect(const struct framing_fields *found, struct request *request)
{
    if (found->expects == 0)
        return 0;
    if (found->expects > 1 || !str_equal_nocase(found->expect.value, STR("100-continue")))
        return 417;
    request->expects_continue = request->version >= HTTP_1_1 && request->content_length > 0;
    return 0;
}

/* Sets *out_keepalive: the connection persists (RFC 9112 9.3). 0 or 400. */
static int read_connection(const struct framing_fields *found, const struct request *request, bool *out_keepalive)
{
    struct connection_options options;

    if (found->connections > 0) {
        if (connection_options_read(&request->headers, &options) < 0)
            return 400;
        *out_keepalive = !options.close && (request->version >= HTTP_1_1 || options.keep_alive);
        return 0;
    }
    *out_keepalive = request->version >= HTTP_1_1;
    return 0;
}

int h1_parse_head(struct str head, const struct session_settings *settings, struct arena *arena,
                  struct request *request, bool *out_keepalive)
{
    ssize_t feed = str_find(head, '\n');
    struct str authority = {NULL, 0};
    struct framing_fields found;
    int status;

    *out_keepalive = false;
    request->bytes = head.length;
    request->version = HTTP_1_1;
    if (feed < 1 || !str_ends(head, STR("\r\n\r\n")))
        return 400;
    status = h1_parse_request_line(str_slice(head, 0, (size_t)feed - 1), request);
    if (status)
        return status;
    status = h1_parse_fields(str_slice(head, (size_t)feed + 1, head.length - 2),
                             settings->underscores_in_headers, arena, &request->headers);
    if (status)
        return status_of(status);
    status = read_target(request, settings->merge_slashes, arena, &authority);
    if (status)
        return status;
    found = find_framing_fields(&request->headers);
    status = read_host(&found, authority, request, arena);
    if (!status)
        status = read_framing(&found, request);
    if (!status)
        status = read_expect(&found, request);
    return status ? status : read_connection(&found, request, out_keepalive);
}
