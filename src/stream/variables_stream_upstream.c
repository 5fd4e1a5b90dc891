/*
 * Variables of `stream` about the upstream servers: the values of all servers that were tried, separated by commas.
 */
#include "server/variables.h"

#include "base/saturate.h"
#include "base/text_writer.h"
#include "stream/stream_private.h"

/* Joins the values of all servers that were tried. */
static struct str join_attempts(const void *subject, struct arena *arena,
                                struct str (*value)(const struct stream *stream, const struct stream_attempt *attempt,
                                                    struct arena *arena))
{
    const struct stream *stream = subject;
    struct str *values;
    size_t count = 0;

    for (const struct stream_attempt *attempt = stream->attempts; attempt; attempt = attempt->next)
        count++;
    values = count ? arena_zalloc(arena, count, sizeof(*values)) : NULL;
    if (!values)
        return (struct str){NULL, 0};
    count = 0;
    for (const struct stream_attempt *attempt = stream->attempts; attempt; attempt = attempt->next)
        values[count++] = value(stream, attempt, arena);
    return count == 1 ? values[0] : arena_join_with(arena, values, count, STR(", "));
}

/* UINT64_MAX: the event has not happened. */
static struct str seconds_or_dash(struct arena *arena, uint64_t us)
{
    return us == UINT64_MAX ? STR("-") : arena_print_seconds(arena, us);
}

static struct str attempt_address(const struct stream *stream, const struct stream_attempt *attempt,
                                  struct arena *arena)
{
    return attempt->server;
}

static struct str attempt_connect_time(const struct stream *stream, const struct stream_attempt *attempt,
                                       struct arena *arena)
{
    return seconds_or_dash(arena, attempt->connect_us);
}

static struct str attempt_first_byte_time(const struct stream *stream, const struct stream_attempt *attempt,
                                          struct arena *arena)
{
    return seconds_or_dash(arena, attempt->first_byte_us);
}

static struct str attempt_session_time(const struct stream *stream, const struct stream_attempt *attempt,
                                       struct arena *arena)
{
    uint64_t end_us = attempt->end_us ? attempt->end_us : stream->worker->loop.clock.monotonic_us;

    return arena_print_seconds(arena, u64_sub_sat(end_us, attempt->begun_us));
}

/* Only the connection to the last server succeeded: 0 for the others. */
static struct str attempt_bytes_sent(const struct stream *stream, const struct stream_attempt *attempt,
                                     struct arena *arena)
{
    bool connected = !attempt->next && stream->connected;

    return arena_print_number(arena, connected ? stream->up.bytes + stream->preread.bytes : 0);
}

static struct str attempt_bytes_received(const struct stream *stream, const struct stream_attempt *attempt,
                                         struct arena *arena)
{
    return arena_print_number(arena, attempt->next ? 0 : stream->down.bytes);
}

#define OF_EACH_ATTEMPT(name)                                                                                \
    static struct str get_upstream_##name(const void *subject, struct str parameter, struct arena *arena)    \
    {                                                                                                        \
        return join_attempts(subject, arena, attempt_##name);                                                \
    }

OF_EACH_ATTEMPT(address)
OF_EACH_ATTEMPT(connect_time)
OF_EACH_ATTEMPT(first_byte_time)
OF_EACH_ATTEMPT(session_time)
OF_EACH_ATTEMPT(bytes_sent)
OF_EACH_ATTEMPT(bytes_received)

static const struct variable variables[] = {
    {"upstream_addr", false, get_upstream_address, .type = "address",
     .help = "Addresses of the upstream servers that were tried, separated by commas."},
    {"upstream_bytes_received", false, get_upstream_bytes_received, .type = "bytes",
     .help = "Bytes received from each server that was tried."},
    {"upstream_bytes_sent", false, get_upstream_bytes_sent, .type = "bytes",
     .help = "Bytes sent to each server that was tried."},
    {"upstream_connect_time", false, get_upstream_connect_time, .type = "seconds",
     .help = "Time to connect to each server that was tried, including TLS."},
    {"upstream_first_byte_time", false, get_upstream_first_byte_time, .type = "seconds",
     .help = "Time until the first byte of each server that was tried."},
    {"upstream_session_time", false, get_upstream_session_time, .type = "seconds",
     .help = "Duration of the connection to each server that was tried."},
};

const struct variable_table variables_stream_upstream = {variables, sizeof(variables) / sizeof(variables[0]), NULL};
