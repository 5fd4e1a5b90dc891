/* The server of libnghttp2, with its enforcement of HTTP messaging. */
#include "h2_sides.h"

#include "http/h1_frame.h"
#include "http/h1_parse.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

struct server {
    struct h2_side *side;
    nghttp2_session *session;
    struct arena arena;
};

/* The user data of a stream. */
struct received {
    struct str method, target, authority, protocol, body;
    struct headers headers, trailers;
};

/*
 * libnghttp2 does not check some rules of extended CONNECT: :protocol is a token (RFC 8441 4), the request has no
 * content (RFC 9110 9.3.6), and only DATA follows (RFC 9113 8.5).
 */
static bool violates_connect(const struct received *request, struct str name, struct str value)
{
    if (str_equal(name, STR(":protocol")))
        return !h1_is_token(value);
    return request->protocol.data && str_equal(name, STR("content-length"));
}

static int headers_begun(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct server *server = user_data;
    struct received *request = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return request->protocol.data ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
    request = arena_zalloc(&server->arena, 1, sizeof(*request));
    h2_side_must(request ? nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, request) : -1);
    return 0;
}

static int field_received(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_bytes,
                          size_t name_length, const uint8_t *value_bytes, size_t value_length, uint8_t flags,
                          void *user_data)
{
    struct server *server = user_data;
    struct received *request = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    struct str name = arena_copy(&server->arena, str_of((const char *)name_bytes, name_length));
    struct str value = arena_copy(&server->arena, str_of((const char *)value_bytes, value_length));

    if (violates_connect(request, name, value))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (str_equal(name, STR(":method")))
        request->method = value;
    else if (str_equal(name, STR(":path")))
        request->target = value;
    else if (str_equal(name, STR(":authority")))
        request->authority = value;
    else if (str_equal(name, STR(":protocol")))
        request->protocol = value;
    else if (str_equal(name, STR(":scheme")))
        return 0;
    else
        h2_side_must(headers_add(frame->headers.cat == NGHTTP2_HCAT_REQUEST ? &request->headers : &request->trailers,
                                 &server->arena, name, value));
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        h2_side_must(buffer_printf(&server->side->notes, "trailer name: [" STR_FMT "]", STR_ARG(name)));
    return 0;
}

static int field_refused(nghttp2_session *session, int code, const char *message, size_t length, void *user_data)
{
    struct server *server = user_data;

    h2_side_must(buffer_append(&server->side->notes, str_of(message, length)));
    return 0;
}

static int data_received(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t length,
                         void *user_data)
{
    struct server *server = user_data;
    struct received *request = nghttp2_session_get_stream_user_data(session, stream);
    const struct str parts[] = {str_or_empty(request->body), str_of((const char *)bytes, length)};

    request->body = arena_join(&server->arena, parts, 2);
    h2_side_must(buffer_append(&server->side->notes, STR("DATA")));
    return 0;
}

static void head_received(struct server *server, uint32_t stream, struct received *request)
{
    if (request->authority.data && !headers_find(&request->headers, STR("host")))
        h2_side_must(headers_add(&request->headers, &server->arena, STR("host"), request->authority));
    if (request->protocol.data)
        headers_remove(&request->headers, STR("sec-websocket-key")); /* as sluice does: only HTTP/1.1 uses it */
    h2_side_head(server->side, stream, request->method, request->target, &request->headers);
}

static void request_end(struct server *server, int32_t stream, struct received *request)
{
    static uint8_t name[] = ":status";
    static uint8_t status[] = "404";
    const nghttp2_nv field = {name, status, sizeof(name) - 1, sizeof(status) - 1, NGHTTP2_NV_FLAG_NONE};

    h1_remove_forbidden_trailers(&request->trailers);
    h2_side_end(server->side, (uint32_t)stream, str_or_empty(request->body), &request->trailers);
    if (h2_side_responds(request->target))
        h2_side_must(nghttp2_submit_response(server->session, stream, &field, 1, NULL));
}

static int frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct server *server = user_data;
    struct received *request = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        head_received(server, (uint32_t)frame->hd.stream_id, request);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        request_end(server, frame->hd.stream_id, request);
    return 0;
}

/* Without the limits against abuse, and with the windows of sluice's side. */
static void session_open(struct server *server, const nghttp2_session_callbacks *callbacks)
{
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, SIDE_STREAMS},
                                               {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, SIDE_WINDOW},
                                               {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
                                               {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1}};
    nghttp2_option *option;

    h2_side_must(nghttp2_option_new(&option));
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_max_settings(option, 10000);
    nghttp2_option_set_max_outbound_ack(option, 10000);
    nghttp2_option_set_max_continuations(option, 10000);
    nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
    h2_side_must(nghttp2_session_server_new2(&server->session, callbacks, server, option));
    h2_side_must(nghttp2_submit_settings(server->session, NGHTTP2_FLAG_NONE, settings, 4));
    nghttp2_option_del(option);
}

static void *server_open(struct h2_side *side)
{
    struct server *server = calloc(1, sizeof(*server));
    nghttp2_session_callbacks *callbacks = NULL;

    h2_side_must(server ? nghttp2_session_callbacks_new(&callbacks) : -1);
    server->side = side;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, headers_begun);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, field_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_received);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_received);
    nghttp2_session_callbacks_set_error_callback2(callbacks, field_refused);
    session_open(server, callbacks);
    nghttp2_session_callbacks_del(callbacks);
    return server;
}

static void server_feed(void *owner, struct str bytes)
{
    struct server *server = owner;
    const uint8_t *sent;
    ssize_t length = nghttp2_session_mem_recv(server->session, (const uint8_t *)bytes.data, bytes.length);

    h2_side_must(length);
    while ((length = nghttp2_session_mem_send(server->session, &sent)) > 0)
        h2_side_must(buffer_append(&server->side->sent, str_of((const char *)sent, (size_t)length)));
    h2_side_must(length);
}

static void server_end(void *owner, uint32_t stream)
{
}

static void server_close(void *owner)
{
    struct server *server = owner;

    nghttp2_session_del(server->session);
    arena_reset(&server->arena);
    free(server);
}

const struct h2_side_ops h2_side_nghttp2 = {server_open, server_feed, server_end, server_close};
