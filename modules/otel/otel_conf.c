/*
 * The directives of the module otel.
 */
#include "otel.h"

#include "base/limits.h"
#include "otlp/otlp_gzip.h"

#include <errno.h>
#include <stddef.h>

#define AT(field)       offsetof(struct otel_conf, field)
#define ENDPOINT_HINT   STR("write: otel_exporter: {endpoint: \"http://127.0.0.1:4318\"}")
#define ATTRIBUTES_HINT STR("write: otel_span_attr: {tenant: $arg_tenant}")

static const char *const contexts[] = {"ignore", "extract", "inject", "propagate", NULL};

enum compression { COMPRESSION_NONE, COMPRESSION_GZIP };

static const char *const compressions[] = {"none", "gzip", NULL}; /* enum compression */

static const char *const switches[] = {"off", "on", NULL};

static int read_sampling(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct otel_sampling *sampling = out;
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0)
        return error;
    if (str_find(text, '$') < 0)
        return conf_read_choice(reader, node, switches, &sampling->on);
    return conf_read_template(reader, node, &sampling->text);
}

static int check_name(struct conf_reader *reader, struct conf_mark mark, struct str name)
{
    bool valid = name.length > 0 && name.length <= LIMIT_SPAN_KEY;

    for (size_t i = 0; i < name.length; i++)
        valid &= name.data[i] > ' ' && name.data[i] <= '~';
    if (valid)
        return 0;
    conf_error(reader->errors, mark, ATTRIBUTES_HINT,
               "the name of an attribute must be printable ASCII without spaces, at most %d bytes", LIMIT_SPAN_KEY);
    return -EINVAL;
}

/* "name value", or a map from names to values. */
static int read_attributes(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct otel_attributes *row = out;
    size_t count = node->kind == CONF_MAP ? node->count : 1;
    struct conf_words words = {0};
    int error = node->kind == CONF_MAP ? 0 : conf_read_words(reader, node, &words);

    if (error == 0 && node->kind != CONF_MAP && words.count != 2) {
        conf_error(reader->errors, node->mark, ATTRIBUTES_HINT, "an attribute takes a name and a value");
        error = -EINVAL;
    }
    row->items = arena_zalloc(reader->arena, count + 1, sizeof(*row->items));
    if (!row->items)
        return -ENOMEM;
    for (; row->count < count && error == 0; row->count++) {
        const struct conf_pair *pair = node->kind == CONF_MAP ? &node->pairs[row->count] : NULL;
        struct otel_attribute *item = &row->items[row->count];

        item->name = pair ? pair->key->text : words.items[0];
        error = check_name(reader, pair ? pair->key->mark : node->mark, item->name);
        if (error == 0)
            error = pair ? conf_read_template(reader, pair->value, &item->value)
                         : conf_read_template_word(reader, node, words.items[1], &item->value);
    }
    return error;
}

static const struct directive exporter_children[] = {
    {.name = "endpoint",
     .type = DIRECTIVE_TEXT,
     .offset = AT(exporter.endpoint),
     .help = "URL of the collector: http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH], by default with port 4318 "
             "or 443, and path /v1/traces. With https, the certificate of the collector and its name are verified."},
    {.name = "trusted_certificate",
     .type = DIRECTIVE_PATH,
     .offset = AT(exporter.trusted),
     .help = "PEM file of the authorities that may certify an https collector (default: those of the system). The file "
             "is read when the configuration is loaded."},
    {.name = "header",
     .type = DIRECTIVE_REPEAT,
     .offset = AT(exporter.header),
     .row_size = sizeof(struct otel_header),
     .row = otel_header_read,
     .secret = true,
     .syntax = "{name: value | {file: PATH}, ...}",
     .schema = "{\"type\": \"object\", \"additionalProperties\": {\"oneOf\": [{\"type\": [\"string\", \"number\", "
               "\"boolean\"]}, {\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"file\"], "
               "\"properties\": {\"file\": {\"type\": \"string\"}}}]}}",
     .help = "Further fields of the requests, such as authorization. {file: PATH} reads a value from a file when the "
             "configuration is loaded: a secret is then neither in the configuration nor in the output of -T and of "
             "sluice ctl configuration diff."},
    {.name = "compression",
     .type = DIRECTIVE_CHOICE,
     .offset = AT(exporter.compression),
     .choices = compressions,
     .default_value = "none",
     .help = "Content-Encoding of the requests. gzip needs a build with zlib."},
    {.name = "interval",
     .type = DIRECTIVE_DURATION,
     .offset = AT(exporter.interval_ms),
     .low = 10,
     .high = LIMIT_OTLP_INTERVAL_MS,
     .default_value = "5s",
     .help = "Longest time between two exports."},
    {.name = "batch_size",
     .type = DIRECTIVE_NUMBER,
     .offset = AT(exporter.batch_size),
     .low = 1,
     .high = LIMIT_OTLP_BATCH,
     .default_value = "512",
     .help = "Largest number of spans in one request to the collector; as many in the queue of a worker are sent "
             "before the interval ends."},
    {.name = "batch_count",
     .type = DIRECTIVE_NUMBER,
     .offset = AT(exporter.batch_count),
     .low = 1,
     .high = LIMIT_OTLP_QUEUE,
     .default_value = "4",
     .help = "Number of batches that wait in each worker; further spans are dropped. A span takes 2 KiB of memory."},
    {0},
};

const struct directive otel_directives[] = {
    {.name = "otel_trace_context",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(context),
     .choices = contexts,
     .default_value = "ignore",
     .example = "otel_trace_context: propagate",
     .help = "W3C Trace Context. extract: read the trace from traceparent and tracestate of the request. inject: send "
             "upstream servers a traceparent with the span of this server, and none of the client's. propagate: both. "
             "ignore: the fields of the client are passed on as any other field. Read the fields of clients that you "
             "trust only: they choose the trace, and whether it is sampled."},
    {.name = "otel_trace",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(sampling),
     .row_size = sizeof(struct otel_sampling),
     .row = read_sampling,
     .syntax = "on | off | $variable",
     .example = "otel_trace: on",
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .help = "Whether a trace that begins at this server is sampled (default: off): on, off, or a variable, which is "
             "on or 1. It is the flag in the traceparent for upstream servers, and only spans of sampled traces are "
             "exported. A trace read from the request keeps the flag of the request; in nginx, this directive replaces "
             "it."},
    {.name = "otel_exporter",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_BLOCK,
     .offset = 0,
     .children = exporter_children,
     .example = "otel_exporter: {endpoint: \"http://127.0.0.1:4318\"}",
     .help = "Exports the spans of sampled requests by OTLP/HTTP in protobuf, with https over TLS. A process of its "
             "own sends them in batches, and repeats a batch after 429, 502, 503, 504 and failed connections; a "
             "request never waits for it. When the collector is down for longer, spans are dropped: the status page "
             "and the error log show how many."},
    {.name = "otel_service_name",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_TEXT,
     .offset = AT(service_name),
     .default_value = "unknown_service:sluice",
     .example = "otel_service_name: shop",
     .help = "The attribute service.name of the resource."},
    {.name = "otel_resource_attr",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(resource_attributes),
     .row_size = sizeof(struct otel_attributes),
     .row = read_attributes,
     .syntax = "name value | {name: value, ...}",
     .example = "otel_resource_attr: {deployment.environment.name: production}",
     .schema = "{\"type\": [\"string\", \"object\"]}",
     .help = "Further attributes of the resource, without variables."},
    {.name = "otel_span_name",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(span_name),
     .example = "otel_span_name: $request_method $uri",
     .help = "The name of the span (default: the location, as in the configuration)."},
    {.name = "otel_span_attr",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(span_attributes),
     .row_size = sizeof(struct otel_attributes),
     .row = read_attributes,
     .syntax = "name value | {name: value, ...}",
     .example = "otel_span_attr: {http.response.body.size: $body_bytes_sent}",
     .schema = "{\"type\": [\"string\", \"object\"]}",
     .help = "Further attributes of the span, in addition to those of the request and the response. Empty values are "
             "omitted, and values are truncated to 512 bytes."},
    {0},
};

static int report_setting(struct conf_reader *reader, const struct conf_node *at, const char *name, struct str hint,
                          const char *what)
{
    const struct conf_node *node = conf_map_get(at, str_from(name));

    conf_error(reader->errors, node ? node->mark : at->mark, hint, "%s: %s", name, what);
    return -EINVAL;
}

/* Loads the authorities while the configuration is loaded: the exporter may lack the right to read their file. */
static int check_tls(const struct otel_exporter *exporter, struct conf_reader *reader, const struct conf_node *at)
{
    const struct conf_node *node = conf_map_get(at, STR("otel_exporter"));
    const struct conf_node *trusted = node ? conf_map_get(node, STR("trusted_certificate")) : NULL;
    char error[256];

    if (!reader->otlp->endpoint.tls && trusted)
        return report_setting(reader, node, "trusted_certificate", STR("endpoint: \"https://HOST\""),
                              "the endpoint is not https, and TLS is not used");
    if (!reader->otlp->endpoint.tls)
        return 0;
    if (otlp_tls_context_open(reader->otlp, exporter->trusted, error, sizeof(error)) == 0)
        return 0;
    if (!trusted)
        return report_setting(reader, at, "otel_exporter", STR(""), error);
    conf_error(reader->errors, trusted->mark, STR("a PEM file of certificates"),
               "\"" STR_FMT "\" cannot be read as trusted certificates: %s", STR_ARG(exporter->trusted), error);
    return -EINVAL;
}

static int check_exporter(const struct otel_exporter *exporter, struct conf_reader *reader, const struct conf_node *at)
{
    struct otlp_endpoint *endpoint = &reader->otlp->endpoint;
    int error;

    if (otlp_endpoint_parse(exporter->endpoint, endpoint) < 0)
        return report_setting(reader, at, "otel_exporter", ENDPOINT_HINT, "endpoint is the URL of a collector");
    if (exporter->batch_size * exporter->batch_count > LIMIT_OTLP_QUEUE)
        return report_setting(reader, at, "otel_exporter", STR("reduce batch_size or batch_count"),
                              "batch_size times batch_count is at most 65536");
    if (exporter->compression == COMPRESSION_GZIP && !otlp_gzip_built)
        return report_setting(reader, at, "otel_exporter",
                              STR("write none, or build sluice with zlib1g-dev and -Dotlp_gzip=enabled"),
                              "compression: gzip needs zlib, which this build does not have");
    reader->otlp->gzip = exporter->compression == COMPRESSION_GZIP;
    reader->otlp->interval_ms = exporter->interval_ms;
    reader->otlp->batch_size = exporter->batch_size;
    reader->otlp->batch_count = exporter->batch_count;
    error = otel_header_check(exporter, reader, at);
    return error < 0 ? error : check_tls(exporter, reader, at);
}

static int set_resource(const struct otel_conf *own, struct conf_reader *reader, const struct conf_node *at)
{
    const struct otel_attributes *rows = own->resource_attributes.items;
    struct otlp_pair *pairs;
    size_t count = 0;

    for (size_t i = 0; i < own->resource_attributes.count; i++)
        count += rows[i].count;
    pairs = arena_zalloc(reader->arena, count + 1, sizeof(*pairs));
    if (!pairs)
        return -ENOMEM;
    reader->otlp->resource = pairs;
    reader->otlp->resource_count = count;
    reader->otlp->service_name = own->service_name;
    for (size_t i = 0; i < own->resource_attributes.count; i++) {
        for (size_t k = 0; k < rows[i].count; k++) {
            if (!rows[i].items[k].value)
                continue; /* reported */
            if (!template_constant(rows[i].items[k].value))
                return report_setting(reader, at, "otel_resource_attr", STR("use otel_span_attr"),
                                      "a value has a variable");
            *pairs++ = (struct otlp_pair){rows[i].items[k].name, template_text(rows[i].items[k].value)};
        }
    }
    return 0;
}

int otel_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct otel_conf *own = conf;
    int error = 0;

    if (!reader->otlp)
        return 0;
    if (reader->scope == SCOPE_HTTP && conf_map_get(at, STR("otel_exporter"))) {
        error = check_exporter(&own->exporter, reader, at);
        if (error == 0)
            error = set_resource(own, reader, at);
    }
    own->otlp = error == 0 && !str_empty(reader->otlp->endpoint.url) ? reader->otlp : NULL;
    return error;
}
