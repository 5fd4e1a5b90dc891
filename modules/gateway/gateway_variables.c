/*
 * nginx's $upstream_ variables. Values of several attempts are joined.
 */
#include "gateway_variables.h"

#include "base/text_writer.h"
#include "gateway.h"

#define ABSENT ((struct str){NULL, 0})

static const struct gateway_request *passed_on(const void *subject)
{
    const struct gateway_request *p = gateway_request_of(subject);

    return p && p->x ? p : NULL;
}

static struct str join_attempts(const void *subject, struct arena *arena,
                                struct str (*value)(const struct gateway_attempt *attempt, struct arena *arena))
{
    const struct gateway_request *p = passed_on(subject);
    struct str *values;
    size_t count = 0;

    for (const struct gateway_attempt *attempt = p ? p->attempts : NULL; attempt; attempt = attempt->next)
        count++;
    values = count ? arena_zalloc(arena, count, sizeof(*values)) : NULL;
    if (!values)
        return ABSENT;
    count = 0;
    for (const struct gateway_attempt *attempt = p->attempts; attempt; attempt = attempt->next)
        values[count++] = value(attempt, arena);
    return count == 1 ? values[0] : arena_join_with(arena, values, count, STR(", "));
}

/* UINT64_MAX: the event has not happened. */
static struct str seconds_or_dash(struct arena *arena, uint64_t us)
{
    return us == UINT64_MAX ? STR("-") : arena_print_seconds(arena, us);
}

static struct str attempt_server(const struct gateway_attempt *attempt, struct arena *arena)
{
    return attempt->server;
}

/* The status sent to the client if there was no response. */
static struct str attempt_status(const struct gateway_attempt *attempt, struct arena *arena)
{
    return arena_print_number(arena, attempt->status ? (uint64_t)attempt->status : 502);
}

static struct str attempt_connect_time(const struct gateway_attempt *attempt, struct arena *arena)
{
    return seconds_or_dash(arena, attempt->connect_us);
}

static struct str attempt_header_time(const struct gateway_attempt *attempt, struct arena *arena)
{
    return seconds_or_dash(arena, attempt->header_us);
}

static struct str attempt_response_time(const struct gateway_attempt *attempt, struct arena *arena)
{
    return seconds_or_dash(arena, attempt->total_us);
}

static struct str attempt_bytes_received(const struct gateway_attempt *attempt, struct arena *arena)
{
    return arena_print_number(arena, attempt->bytes_received);
}

static struct str attempt_bytes_sent(const struct gateway_attempt *attempt, struct arena *arena)
{
    return arena_print_number(arena, attempt->bytes_sent);
}

#define OF_EACH_ATTEMPT(name)                                                                                        \
    static struct str get_##name(const void *subject, struct str parameter, struct arena *arena)             \
    {                                                                                                        \
        return join_attempts(subject, arena, attempt_##name);                                                         \
    }

OF_EACH_ATTEMPT(server)
OF_EACH_ATTEMPT(status)
OF_EACH_ATTEMPT(connect_time)
OF_EACH_ATTEMPT(header_time)
OF_EACH_ATTEMPT(response_time)
OF_EACH_ATTEMPT(bytes_received)
OF_EACH_ATTEMPT(bytes_sent)

/* True if "content_type" means Content-Type. */
static bool names_field(struct str parameter, struct str name)
{
    if (parameter.length != name.length)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.data[i] == '-' ? '_' : str_lower(name.data[i]);

        if (c != str_lower(parameter.data[i]))
            return false;
    }
    return true;
}

static struct str get_header(const void *subject, struct str parameter, struct arena *arena)
{
    const struct gateway_request *p = passed_on(subject);

    struct str joined;

    if (!p || headers_join(&p->reply.headers, names_field, parameter, STR(", "), arena, &joined) < 0)
        return ABSENT;
    return joined;
}

static struct str get_cache_status(const void *subject, struct str parameter, struct arena *arena)
{
    const struct gateway_request *p = passed_on(subject);
    const char *name = p && p->cached ? cached_status_name(p->cached->status) : NULL;

    return name ? str_from(name) : ABSENT;
}

static const struct variable variables[] = {
    {"upstream_addr", false, get_server, .type = "address",
     .help = "Addresses of the upstream servers that were tried, separated by commas."},
    {"upstream_bytes_received", false, get_bytes_received, .late = true, .type = "bytes",
     .help = "Bytes received from each server that was tried."},
    {"upstream_bytes_sent", false, get_bytes_sent, .late = true, .type = "bytes",
     .help = "Bytes sent to each server that was tried."},
    {"upstream_cache_status", false, get_cache_status, .type = "text",
     .help = "MISS, BYPASS, EXPIRED, STALE, UPDATING, REVALIDATED, PARTIAL or HIT."},
    {"upstream_connect_time", false, get_connect_time, .type = "seconds",
     .help = "Time to connect to each server that was tried, including TLS."},
    {"upstream_header_time", false, get_header_time, .type = "seconds",
     .help = "Time until the response head of each server that was tried."},
    {"upstream_http_", true, get_header, .type = "text",
     .help = "Header field of the server's response with that name, as in $http_."},
    {"upstream_response_time", false, get_response_time, .late = true, .type = "seconds",
     .help = "Time until the last byte of the response of each server that was tried."},
    {"upstream_status", false, get_status, .type = "number",
     .help = "Status of each server that was tried."},
};

const struct variable_table gateway_variables = {variables, sizeof(variables) / sizeof(variables[0]), NULL};
