/*
 * The module otel: its configuration, and the trace of a request. Private to modules/otel.
 */
#ifndef OTEL_H
#define OTEL_H

#include "http/trace_context.h"
#include "otlp/otlp.h"
#include "server/module.h"

/* otel_trace_context is a set of these bits. */
enum { CONTEXT_EXTRACT = 1, CONTEXT_INJECT = 2 };

/* One `otel_span_attr` or `otel_resource_attr`: a line, or a map of several attributes. */
struct otel_attributes {
    struct otel_attribute {
        struct str name;
        const struct template *value;
    } *items;
    size_t count;
};

/* One `header` of otel_exporter: a map of several fields. */
struct otel_header {
    struct otlp_pair *fields;
    size_t count;
};

struct otel_conf {
    int context;
    struct otel_sampling {
        const struct template *text;    /* NULL: `on` holds */
        int on;
    } sampling;
    struct otel_exporter {
        struct str endpoint, trusted;
        struct conf_rows header;        /* struct otel_header */
        int compression;
        uint64_t interval_ms, batch_size, batch_count;
    } exporter;
    struct str service_name;
    const struct template *span_name;   /* NULL: the location */
    /* struct otel_attributes. */
    struct conf_rows span_attributes, resource_attributes;
    const struct otlp *otlp;            /* NULL: spans are not exported */
};

/* In the client's exchange, for its subrequests, too. */
struct otel_trace {
    bool begun;
    bool decided;                   /* own.sampled is set */
    bool exported;                  /* the span of the request is exported when it ends */
    struct trace_context parent;    /* of the request; trace_id data NULL: none, or not read */
    struct str tracestate;          /* of the request; empty: none */
    struct trace_context own;
    char new_trace_id[TRACE_ID_DIGITS];
    char span_id[SPAN_ID_DIGITS];
};

extern const struct module module_otel;
extern const struct directive otel_directives[];

/* Sets the export of the configuration in the scope http, and checks its directives. */
int otel_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);
/* A directive_row: reads one `header`, and the files of its values. */
int otel_header_read(struct conf_reader *reader, const struct conf_node *node, void *out);
/* Sets the fields of the export. `at` is the scope http. 0, -EINVAL (reported) or -ENOMEM. */
int otel_header_check(const struct otel_exporter *exporter, struct conf_reader *reader, const struct conf_node *at);
/* Stores the span of a request that ends now in the queue of the worker; a full queue drops it. Never waits. */
void otel_export_span(struct exchange *x, const struct otel_conf *conf, const struct otel_trace *trace);

#endif
