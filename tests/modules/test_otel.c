/*
 * The module otel: the fields that later modules and the gateways see, with ids from a known buffer of random bytes.
 */
#include "loopback.h"

#include "otlp/otlp_gzip.h"

#include <stdio.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"
#define PARENT "traceparent: 00-" TRACE "-" SPAN "-01"

static struct loopback server;

static void open_server(const char *mode)
{
    char configuration[1024];

    snprintf(configuration, sizeof(configuration),
             "http: {server: {listen: 8080, otel_trace_context: %s, location: {\n"
             "  /fields: {return: '200 \"$http_traceparent|$http_tracestate|$http_connection\"'},\n"
             "  /ids: {return: '200 $otel_trace_id|$otel_span_id|$otel_parent_id|$otel_parent_sampled'},\n"
             "  /on: {otel_trace: on, return: 200 $http_traceparent}}}}",
             mode);
    loopback_open(&server, configuration);
    /* The last bytes are drawn first: the span, then the trace. */
    for (size_t i = 0; i < sizeof(server.worker.random); i++)
        server.worker.random[i] = (unsigned char)i;
    server.worker.random_left = sizeof(server.worker.random);
}

#define DRAWN_SPAN  "f8f9fafbfcfdfeff"
#define DRAWN_TRACE "e8e9eaebecedeeeff0f1f2f3f4f5f6f7"

static const struct {
    const char *mode, *request, *body;
} cases[] = {
    {"ignore", "GET /fields HTTP/1.1\n" PARENT, "00-" TRACE "-" SPAN "-01||close"},
    {"ignore", "GET /ids HTTP/1.1\n" PARENT, DRAWN_TRACE "|" DRAWN_SPAN "||0"},
    {"extract", "GET /fields HTTP/1.1\n" PARENT "\ntracestate: A", "00-" TRACE "-" SPAN "-01|A|close"},
    {"extract", "GET /ids HTTP/1.1\n" PARENT, TRACE "|" DRAWN_SPAN "|" SPAN "|1"},
    {"extract", "GET /ids HTTP/1.1\n" PARENT "\n" PARENT, DRAWN_TRACE "|" DRAWN_SPAN "||0"},
    {"inject", "GET /fields HTTP/1.1\n" PARENT "\ntracestate: a=1", "00-" DRAWN_TRACE "-" DRAWN_SPAN "-00||close"},
    {"inject", "GET /ids HTTP/1.1\n" PARENT, DRAWN_TRACE "|" DRAWN_SPAN "||0"},
    {"inject", "GET /on HTTP/1.1\n" PARENT, "00-" DRAWN_TRACE "-" DRAWN_SPAN "-01"},
    {"propagate", "GET /fields HTTP/1.1\n" PARENT "\ntracestate: a=1\ntracestate: b=2",
     "00-" TRACE "-" DRAWN_SPAN "-01|a=1,b=2|close"},
    {"propagate", "GET /fields HTTP/1.1\n" PARENT "\ntracestate: a=1,a=2", "00-" TRACE "-" DRAWN_SPAN "-01||close"},
    {"propagate", "GET /fields HTTP/1.1\ntracestate: a=1", "00-" DRAWN_TRACE "-" DRAWN_SPAN "-00||close"},
    {"propagate", "GET /fields HTTP/1.1\n" PARENT "0", "00-" DRAWN_TRACE "-" DRAWN_SPAN "-00||close"},
    {"propagate", "GET /on HTTP/1.1\ntraceparent: 00-" TRACE "-" SPAN "-00", "00-" TRACE "-" DRAWN_SPAN "-00"},
    {"propagate", "GET /fields HTTP/1.1\nConnection: x, TraceParent, y;z\nConnection: tracestate",
     "00-" DRAWN_TRACE "-" DRAWN_SPAN "-00||x, y;z, close"},
    {"extract", "GET /fields HTTP/1.1\nConnection: traceparent", "||traceparent, close"},
};

START_TEST(every_case_has_its_fields_and_ids)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_server(cases[i].mode);
        loopback_request(&server, cases[i].request);
        ck_assert_int_eq(server.status, 200);
        ck_assert_text(server.body, cases[i].body);
        loopback_close(&server);
    }
}
END_TEST

/* An id of zeros is invalid: it is drawn again. */
START_TEST(ids_are_not_zero)
{
    open_server("inject");
    memset(server.worker.random, 0, sizeof(server.worker.random));
    loopback_request(&server, "GET /ids HTTP/1.1");
    ck_assert_int_eq(server.status, 200);
    ck_assert(!str_starts(server.body, STR("00000000000000000000000000000000|")));
    ck_assert(str_search(server.body, STR("|0000000000000000|")) < 0);
    loopback_close(&server);
}
END_TEST

/* Other requests do not draw the ids of a trace. */
START_TEST(ids_are_drawn_on_demand)
{
    open_server("ignore");
    loopback_request(&server, "GET /fields HTTP/1.1\n" PARENT);
    ck_assert_uint_eq(server.worker.random_left, sizeof(server.worker.random));
    loopback_request(&server, "GET /ids HTTP/1.1");
    ck_assert_uint_eq(server.worker.random_left, sizeof(server.worker.random) - 24);
    loopback_close(&server);
    open_server("extract");
    loopback_request(&server, "GET /fields HTTP/1.1\n" PARENT);
    ck_assert_uint_eq(server.worker.random_left, sizeof(server.worker.random) - 8);
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    loopback_configuration_rejected("otel_trace_context: propogate", "propogate");
    loopback_configuration_rejected("otel_trace_context: [extract, inject]", "otel_trace_context");
    loopback_configuration_rejected("otel_trace: always", "always");
    loopback_configuration_rejected("otel_trace: $otel_parent", "otel_parent");
}
END_TEST

START_TEST(gzip_needs_zlib)
{
    struct configuration_source source = {
        .text = STR("http: {otel_exporter: {endpoint: 'http://a', compression: gzip}, server: {listen: 8080}}")};
    struct log log = {.level = LOG_EMERG};
    struct buffer diagnostics = {0};
    struct configuration *configuration = configuration_load(&source, &log, &diagnostics);

    ck_assert(otlp_gzip_built == (configuration != NULL));
    ck_assert(otlp_gzip_built != (str_search(buffer_str(&diagnostics), STR("-Dotlp_gzip=enabled")) >= 0));
    configuration_destroy(configuration);
    buffer_finish(&diagnostics);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {every_case_has_its_fields_and_ids, ids_are_not_zero, ids_are_drawn_on_demand,
                                  invalid_configurations_are_rejected, gzip_needs_zlib, NULL};

    return loopback_run("otel", tests);
}
