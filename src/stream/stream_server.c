/*
 * The upstream side of a `stream` connection: chooses a server, connects, tries another one after a failure; then
 * starts both flows.
 */
#include "stream/stream_private.h"
#include "upstream/upstream_bind.h"

#include "base/saturate.h"
#include "http/url.h"
#include "server/descriptors.h"

#include <errno.h>

static uint64_t since_begun(const struct stream *stream)
{
    return u64_sub_sat(stream->worker->loop.clock.monotonic_us, stream->attempt->begun_us);
}

/* Returns the host without the port, for the certificate check. */
static struct str host_of(const struct upstream *upstream)
{
    ssize_t colon = str_rfind(upstream->name, ':');
    ssize_t close = str_rfind(upstream->name, ']');

    return colon > close && !upstream->named ? str_slice(upstream->name, 0, (size_t)colon) : upstream->name;
}

static int set_upstream_tls(struct stream *stream)
{
    const struct core_stream_tls *conf = stream->server_conf->tls;

    if (!conf->on)
        return 0;
    stream->transport.context = upstream_pool_tls(stream->worker->upstreams, &conf->ssl.settings);
    if (conf->ssl.name)
        stream->transport.name = url_without_port(stream_eval(stream, conf->ssl.name));
    else
        stream->transport.name = host_of(upstream_group_upstream(stream->group));
    return stream->transport.context && stream->transport.name.data ? 0 : -ENOMEM;
}

int stream_find_group(struct stream *stream)
{
    const struct stream_pass *pass = &stream->conf->pass;
    struct upstream_pool *pool = stream->worker->upstreams;
    const struct template *key;
    struct str text;
    int error = -ENOMEM;

    if (pass->upstream) {
        stream->group = upstream_pool_group(pool, pass->upstream);
    } else {
        text = stream_eval(stream, pass->text);
        if (text.data)
            stream->group = upstream_pool_target_of(pool, UPSTREAM_STREAM, text, 0, &error);
        if (!stream->group) {
            stream_log_line(stream, LOG_ERROR, "proxy_pass: the evaluated value is not an address", error);
            return error == -ENOMEM ? 500 : 502;
        }
    }
    key = upstream_group_upstream(stream->group)->key;
    if (key)
        stream->choice.key = stream_eval(stream, key);
    return (key && !stream->choice.key.data) || set_upstream_tls(stream) < 0 ? 500 : 0;
}

/* The bytes fit into one output block, which is at least as large as preread_buffer_size. */
static int send_preread_input(struct stream *stream)
{
    const struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = buffer_str(&stream->preread.input)};
    int error = chunk.bytes.length > 0 ? wire_send(&stream->server->wire, &chunk) : 0;

    buffer_finish(&stream->preread.input);
    wire_flush(&stream->server->wire);
    return error;
}

static void server_opened(void *user)
{
    struct stream *stream = user;

    if (send_preread_input(stream) < 0) {
        stream_reject(stream, 500);
        return;
    }
    stream->connected = true;
    stream_debug(stream, "connected to upstream \"%s\"", stream->peer->name);
    stream->attempt->connect_us = since_begun(stream);
    stream_record_activity(stream);
    upstream_peer_succeeded(stream->peer);
    upstream_set_timeout(stream->server, 0);
    stream->up.rate = stream->conf->upload_rate;
    stream->down.rate = stream->conf->download_rate;
    stream_flow_start(&stream->up, &stream->client, &stream->server->wire);
    stream_flow_start(&stream->down, &stream->server->wire, &stream->client);
}

static size_t server_received(void *user, struct str bytes)
{
    struct stream *stream = user;
    size_t taken;

    stream_record_activity(stream);
    if (stream->attempt->first_byte_us == UINT64_MAX && !str_empty(bytes))
        stream->attempt->first_byte_us = since_begun(stream);
    taken = stream_flow_received(&stream->down, bytes);
    stream_end_if_complete(stream);
    return taken;
}

static void server_piped(void *user, size_t count)
{
    struct stream *stream = user;

    stream_record_activity(stream);
    stream_flow_piped(&stream->down, count);
}

static void server_writable(void *user)
{
    struct stream *stream = user;

    stream_record_activity(stream);
    stream_flow_writable(&stream->up);
    stream_end_if_complete(stream);
}

/* The time since the first attempt, in ms. */
static uint64_t tried_ms(const struct stream *stream)
{
    const struct stream_attempt *first = stream->attempts;

    return first ? u64_sub_sat(stream->worker->loop.clock.monotonic_us, first->begun_us) / 1000 : 0;
}

static bool may_try_another(const struct stream *stream)
{
    const struct core_stream *conf = stream->conf;

    return conf->next_upstream && (conf->next_tries == 0 || stream->tries < conf->next_tries) &&
           (conf->next_timeout_ms == 0 || tried_ms(stream) < conf->next_timeout_ms) &&
           upstream_has_another(stream->group, &stream->choice);
}

static void attempt_failed(struct stream *stream, int error)
{
    stream->attempt->end_us = stream->worker->loop.clock.monotonic_us;
    if (error == -EBUSY) { /* another worker took the last connection: no server was contacted */
        stream->tries--;
        return;
    }
    if (descriptors_exhausted(error))
        (void)descriptors_reclaim(stream->worker);
    stream_log_line(stream, LOG_ERROR,
                    error == -EPROTO ? "TLS failed while connecting to upstream"
                                     : "connect() failed while connecting to upstream",
                    error);
    if (!upstream_is_local_error(error))
        upstream_peer_failed(stream->peer);
}

/* Aborts the client's connection as well, because its data may be incomplete. */
static void server_failed(void *user, int error)
{
    struct stream *stream = user;

    stream->server = NULL;
    if (stream->connected) {
        stream_log_line(stream, error == -EPROTO ? LOG_ERROR : LOG_INFO,
                        error == -EPROTO ? "TLS failed while reading upstream"
                                         : "upstream prematurely closed connection",
                        error);
        stream_end(stream, WIRE_CLOSE_REFUSED);
        return;
    }
    attempt_failed(stream, error);
    if (may_try_another(stream))
        stream_try_server(stream);
    else
        stream_reject(stream, 502);
}

static const struct upstream_events server_events = {
    .opened = server_opened,
    .received = server_received,
    .piped = server_piped,
    .writable = server_writable,
    .failed = server_failed,
};

static void name_resolved(struct upstream_waiter *waiter)
{
    stream_try_server(container_of(waiter, struct stream, waiter));
}

static struct str make_proxy_header(struct stream *stream)
{
    unsigned version = (unsigned)stream->conf->proxy_protocol;
    union proxy_address own;

    if (version == 0)
        return STR("");
    wire_local_address(&stream->client, &own);
    return str_of(stream->proxy_header,
                  proxy_header_write(stream_client(stream), &own.any, version, stream->proxy_header));
}

static int add_stream_attempt(struct stream *stream)
{
    struct stream_attempt *attempt = arena_zalloc(&stream->arena, 1, sizeof(*attempt));

    if (!attempt)
        return -ENOMEM;
    attempt->server = arena_copy(&stream->arena, str_from(stream->peer->name));
    attempt->begun_us = stream->worker->loop.clock.monotonic_us;
    attempt->connect_us = attempt->first_byte_us = UINT64_MAX;
    if (stream->attempt)
        stream->attempt->next = attempt;
    else
        stream->attempts = attempt;
    stream->attempt = attempt;
    return attempt->server.data ? 0 : -ENOMEM;
}

/*
 * A server that fails immediately is skipped without waiting. Opens a new connection each time, because an idle one may
 * have transferred data of another client.
 */
static int connect_to_server(struct stream *stream)
{
    int error = add_stream_attempt(stream);

    stream->transport.proxy_header = make_proxy_header(stream);
    stream->transport.local_address = upstream_bind_address(&stream->conf->bind);
    stream->tries++;
    if (error < 0)
        return error;
    stream_debug(stream, "connecting to upstream \"%s\"", stream->peer->name);
    error = upstream_connect(stream->peer, &stream->transport, &server_events, stream, stream->conf->connect_timeout_ms,
                             true, &stream->server);
    if (error < 0) {
        stream->server = NULL;
        attempt_failed(stream, error);
    }
    return error;
}

void stream_try_server(struct stream *stream)
{
    int error;

    while ((stream->peer = upstream_choose(stream->group, &stream->choice, &error)) != NULL) {
        error = connect_to_server(stream);
        if (error == 0)
            return;
        if (error != -EBUSY && !may_try_another(stream))
            break;
    }
    if (!stream->peer && error == -EAGAIN) {
        stream->waiter.resolved = name_resolved;
        upstream_wait(stream->group, &stream->waiter);
        return;
    }
    if (stream->tries == 0)
        stream_log_line(stream, LOG_ERROR, error == -ENOENT ? "host not found" : "no live upstreams", 0);
    stream_reject(stream, 502);
}
