/*
 * `otel_trace_context`: W3C Trace Context as of nginx's module otel. Reads the trace of a request, and replaces its
 * traceparent and tracestate, which the gateways then forward as any other field. A request has one span, which its
 * internal redirects, subrequests and attempts share. otel_conf.c has the directives, otel_span.c exports the span.
 */
#include "otel.h"

#include "base/text_writer.h"
#include "http/connection_options.h"

#include <errno.h>

#define ABSENT ((struct str){NULL, 0})

/* Reads the parent if the location permits it, and draws the ids. 0 or -errno: the trace has not begun. */
static int begin_trace(const struct exchange *x, struct otel_trace *trace)
{
    const struct otel_conf *conf = exchange_conf(x, &module_otel);
    struct exchange *client = exchange_main(x);
    struct worker *worker = exchange_worker(x);
    const struct headers *headers = &client->request.headers;
    struct trace_context parent = {0};
    struct str tracestate = STR("");
    int error = worker_random_id(worker, trace->span_id, sizeof(trace->span_id));

    if (error == 0 && (conf->context & CONTEXT_EXTRACT) && traceparent_read(headers, &parent))
        error = tracestate_read(headers, &client->arena, &tracestate);
    else if (error == 0)
        error = worker_random_id(worker, trace->new_trace_id, sizeof(trace->new_trace_id));
    if (error < 0)
        return error;
    trace->parent = parent;
    trace->tracestate = tracestate;
    trace->own.trace_id = parent.trace_id.data ? parent.trace_id : str_of(trace->new_trace_id, TRACE_ID_DIGITS);
    trace->own.span_id = str_of(trace->span_id, SPAN_ID_DIGITS);
    trace->begun = true;
    return 0;
}

/* Returns the trace of the request, which begins at the first call. 0 or -errno. */
static int find_trace(const struct exchange *x, struct otel_trace **out)
{
    struct otel_trace *trace = exchange_state(exchange_main(x), &module_otel, sizeof(*trace));
    int error = trace ? 0 : -ENOMEM;

    if (error == 0 && !trace->begun)
        error = begin_trace(x, trace);
    if (error == 0)
        *out = trace;
    return error;
}

static bool is_sampled(struct exchange *x, const struct otel_conf *conf, const struct otel_trace *trace)
{
    struct str value;

    if (trace->parent.trace_id.data)
        return trace->parent.sampled;
    if (!conf->sampling.text)
        return conf->sampling.on;
    value = exchange_eval(x, conf->sampling.text);
    return str_equal(value, STR("on")) || str_equal(value, STR("1"));
}

static void remove_fields(struct headers *headers)
{
    headers_remove(headers, STR("traceparent"));
    headers_remove(headers, STR("tracestate"));
}

static int set_fields(struct exchange *x, const struct otel_trace *trace)
{
    struct headers *headers = &x->request.headers;
    char *text = arena_alloc(&x->arena, TRACEPARENT_LENGTH);
    int error = text ? 0 : -ENOMEM;

    remove_fields(headers);
    if (text)
        traceparent_write(&trace->own, text);
    if (error == 0)
        error = headers_add(headers, &x->arena, STR("traceparent"), str_of(text, TRACEPARENT_LENGTH));
    if (error == 0 && !str_empty(trace->tracestate))
        error = headers_add(headers, &x->arena, STR("tracestate"), trace->tracestate);
    return error;
}

static bool is_trace_field(struct str name)
{
    return str_equal_nocase(name, STR("traceparent")) || str_equal_nocase(name, STR("tracestate"));
}

/*
 * A client that names the fields in Connection removes its own fields (RFC 9110 7.6.1), not those of this server: the
 * names are removed from Connection.
 */
static int remove_connection_options(struct exchange *x)
{
    struct str members[LIMIT_CONNECTION_OPTIONS];
    struct headers *headers = &x->request.headers;
    struct header_list list;
    struct str member, value;
    size_t kept = 0, count = 0;

    header_list_start(&list, headers, STR("Connection"));
    for (; count < LIMIT_CONNECTION_OPTIONS && header_list_next(&list, &member); count++) {
        struct str rest = member;

        if (!is_trace_field(str_trim(str_cut(&rest, ';'))))
            members[kept++] = member;
    }
    if (kept == count)
        return 0;
    headers_remove(headers, STR("Connection"));
    if (kept == 0)
        return 0;
    value = arena_join_with(&x->arena, members, kept, STR(", "));
    return value.data ? headers_add(headers, &x->arena, STR("Connection"), value) : -ENOMEM;
}

/* Decides once whether the trace is sampled. A span is exported only if a location of the client's request traces. */
static void decide_sampling(struct exchange *x, const struct otel_conf *conf, struct otel_trace *trace)
{
    if (!trace->decided)
        trace->own.sampled = is_sampled(x, conf, trace);
    trace->decided = true;
    trace->exported |= conf->otlp && trace->own.sampled && !exchange_is_subrequest(x);
}

static int inject_fields(struct exchange *x, const struct otel_trace *trace)
{
    int error = set_fields(x, trace);

    return error < 0 ? error : remove_connection_options(x);
}

static enum outcome otel_handler(struct exchange *x, const void *conf, void *state)
{
    const struct otel_conf *own = conf;
    struct otel_trace *trace;
    int error = find_trace(x, &trace);

    if (error == 0 && ((own->context & CONTEXT_INJECT) || own->otlp))
        decide_sampling(x, own, trace);
    if (error == 0 && (own->context & CONTEXT_INJECT))
        error = inject_fields(x, trace);
    if (error == 0)
        return OUTCOME_DECLINED;
    if (own->context & CONTEXT_INJECT) /* upstream servers trust the fields */
        remove_fields(&x->request.headers);
    if (exchange_may_log_error(x, error))
        exchange_log_error(x, LOG_ERROR, "otel: the request is not traced (%d: %s)", -error, strerror(-error));
    return OUTCOME_DECLINED;
}

static bool otel_idle(const void *conf)
{
    const struct otel_conf *own = conf;

    return own->context == 0 && !(own->otlp && (own->sampling.on || own->sampling.text));
}

static bool otel_finishes(const void *conf)
{
    const struct otel_conf *own = conf;

    return own->otlp != NULL;
}

static void otel_finish(struct exchange *x, const void *conf)
{
    const struct otel_trace *trace = exchange_is_subrequest(x) ? NULL : exchange_state_found(x, &module_otel);

    if (trace && trace->exported)
        otel_export_span(x, conf, trace);
}

static struct str get_trace_id(const void *subject, struct str parameter, struct arena *arena)
{
    struct otel_trace *trace;

    return find_trace(subject, &trace) < 0 ? ABSENT : trace->own.trace_id;
}

static struct str get_span_id(const void *subject, struct str parameter, struct arena *arena)
{
    struct otel_trace *trace;

    return find_trace(subject, &trace) < 0 ? ABSENT : trace->own.span_id;
}

static struct str get_parent_id(const void *subject, struct str parameter, struct arena *arena)
{
    struct otel_trace *trace;

    return find_trace(subject, &trace) < 0 ? ABSENT : trace->parent.span_id;
}

static struct str get_parent_sampled(const void *subject, struct str parameter, struct arena *arena)
{
    struct otel_trace *trace;

    return find_trace(subject, &trace) < 0 ? ABSENT : trace->parent.sampled ? STR("1") : STR("0");
}

static const struct variable variables[] = {
    {"otel_parent_id", false, get_parent_id, .type = "text",
     .help = "Span of the client: 16 hexadecimal digits, if otel_trace_context extracts them; else undefined."},
    {"otel_parent_sampled", false, get_parent_sampled, .type = "text",
     .help = "1 if otel_trace_context extracts a trace with the flag sampled; else 0."},
    {"otel_span_id", false, get_span_id, .type = "text",
     .help = "16 random hexadecimal digits per request: the span of this server."},
    {"otel_trace_id", false, get_trace_id, .type = "text",
     .help = "32 hexadecimal digits of the trace: the client's if otel_trace_context extracts it, else random."},
};

static const struct variable_table variable_table = {variables, sizeof(variables) / sizeof(variables[0]), NULL};

const struct module module_otel = {
    .name = "otel",
    .directives = otel_directives,
    .conf_size = sizeof(struct otel_conf),
    .conf_check = otel_conf_check,
    .idle = otel_idle,
    .handler = otel_handler,
    .finish = otel_finish,
    .finishes = otel_finishes,
    .variables = &variable_table,
};
