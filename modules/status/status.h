/*
 * The status page: status.c has the handler, status_metrics.c, status_caches.c, status_limits.c, status_upstreams.c and
 * status_zones.c define the values, status_page.c, status_html.c and status_histogram.c format them. Private to the
 * status module.
 */
#ifndef STATUS_H
#define STATUS_H

#include "acme/acme.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/status_zone.h"
#include "cache/cache_conf.h"
#include "cache/cache_zone.h"
#include "limit/limit_conf.h"
#include "master/counters.h"
#include "upstream/upstream_zone.h"

/* Status classes by first digit; [0]: others. */
#define STATUS_CLASSES 6
extern const char *const status_class_names[STATUS_CLASSES];

/* A snapshot of a zone of `status_zone`. */
struct status_zone_value {
    enum status_zone_kind kind;
    const char *name;
    struct str label;               /* zone="...", escaped for Prometheus text */
    struct status_zone_counts counts;
};

/* A snapshot of a cache. */
struct status_cache_value {
    const char *name;
    uint64_t max_bytes;             /* UINT64_MAX: unlimited */
    struct cache_totals totals;
    uint64_t responses[CACHED_STATUSES];
};

/* A snapshot of a zone of limit_req or limit_conn. */
struct status_limit_value {
    const char *name, *directive;   /* the directive: limit_req, limit_conn, stream limit_conn */
    struct limit_zone_totals totals;
};

/* A snapshot of the counters, in the form that the metrics refer to. */
struct status_values {
    struct counters_total total;
    uint64_t one;                       /* always 1, the value of METRIC_FACT */
    uint64_t classes[STATUS_CLASSES];
    uint64_t handshakes[3];             /* full, resumed, failed */
    uint64_t lookups[2];                /* hits, misses */
    uint64_t upstream_handshakes[3];    /* as `handshakes`, with upstreams */
    struct upstream_zone *upstreams;    /* NULL: none */
    struct status_zone_value *zones;    /* in the order of the file; sorted by status_html */
    size_t zone_count;
    struct status_cache_value *caches;  /* in the order of the file */
    size_t cache_count;
    struct status_limit_value *limits;  /* in the order of the file */
    size_t limit_count;
    const struct acme *acme;            /* certificates; may have none */
    int64_t now_s;                      /* wall clock */
    uint64_t zero_copy;                 /* bytes */
    uint64_t zero_copy_share;           /* of all bytes sent, in millionths */
};

enum metric_type {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_FACT,                    /* information in the label; the value is constant */
    METRIC_HISTOGRAM,               /* of request times, the only histogram */
};

struct metric {
    const char *name;               /* without the prefix "sluice_" of Prometheus text */
    enum metric_type type;
    const char *help;
    const char *label;              /* label name; NULL: a single value */
    const char *(*label_of)(unsigned index, char memory[8]);
    unsigned first, end;            /* range of values: indices from the uint64_t at `offset` */
    size_t offset;                  /* in struct status_values */
    bool millionths;                /* printed in units: microseconds as seconds */
    bool sparse;                    /* zero values are omitted */
};

/* Ended by a row without a name. */
extern const struct metric status_metrics[];

/* Computes the members that are derived from `total`. */
void status_collect(struct status_values *values);
/*
 * Takes the snapshot of the zones, from the rows of the first `slots` workers; texts are in the arena. Returns 0 or
 * -ENOMEM.
 */
MUST_CHECK int status_zones_collect(struct status_values *values, struct arena *arena, const struct status_zones *zones,
                                    unsigned slots);

/* Take the snapshots of caches and limits, in the arena. Return 0 or -ENOMEM. */
MUST_CHECK int status_caches_collect(struct status_values *values, struct arena *arena, const struct caches *caches);
MUST_CHECK int status_limits_collect(struct status_values *values, struct arena *arena, const struct limits *limits);

/* A page being written. Records the first error, so that the writers need no checks. */
struct status_page_text {
    struct buffer *out;
    int error;
};

/* Appends formatted text; no effect after an error. */
void status_print(struct status_page_text *page, const char *format, ...) PRINTF_LIKE(2, 3);
/* Prints the two lines before the samples of a metric. */
void status_print_head(struct status_page_text *page, const char *name, const char *type, const char *help);
/* Prints text without a limit of its length. */
void status_print_text(struct status_page_text *page, struct str text);
/* Prints text, escaped for HTML. */
void status_print_html(struct status_page_text *page, const char *text);
/*
 * Prints a label value, escaped for Prometheus text, whose readers reject a page with invalid UTF-8: U+FFFD replaces
 * it.
 */
void status_print_label(struct status_page_text *page, const char *text);
/* Prints the contents of a JSON string. Bytes that are not UTF-8 become U+FFFD. */
void status_print_json(struct status_page_text *page, const char *text);

/* Prints a number with groups of three digits, for HTML. */
void status_print_number(struct status_page_text *page, uint64_t value);
/* Formats millionths as a decimal fraction without trailing zeros. Returns `memory`. */
const char *status_format_millionths(uint64_t value, char memory[32]);

/* Append a histogram of that name without the prefix "sluice_". `labels`: escaped, may be empty. */
void status_histogram_prometheus(struct status_page_text *page, const char *name, struct str labels,
                                 const struct latency *latency);
/* An object: cumulative counts by bound, the sum in seconds, the number of values. */
void status_histogram_json(struct status_page_text *page, const struct latency *latency);

/* Append the zones; nothing without any. */
void status_zones_prometheus(struct status_page_text *page, const struct status_values *values);
void status_zones_json(struct status_page_text *page, const struct status_values *values);
void status_zones_html(struct status_page_text *page, const struct status_values *values);

/* Appends the upstream metrics; nothing without upstreams. */
void status_upstreams_prometheus(struct status_page_text *page, struct upstream_zone *zone);
void status_upstreams_json(struct status_page_text *page, struct upstream_zone *zone);
void status_upstreams_html(struct status_page_text *page, struct upstream_zone *zone);

/* Append the response caches; nothing without any. */
void status_caches_prometheus(struct status_page_text *page, const struct status_values *values);
void status_caches_json(struct status_page_text *page, const struct status_values *values);
void status_caches_html(struct status_page_text *page, const struct status_values *values);

/* Append the zones of limit_req and limit_conn; nothing without any. */
void status_limits_prometheus(struct status_page_text *page, const struct status_values *values);
void status_limits_json(struct status_page_text *page, const struct status_values *values);
void status_limits_html(struct status_page_text *page, const struct status_values *values);

/* Append the certificates by ACME; nothing without any. */
void status_acme_prometheus(struct status_page_text *page, const struct acme *acme);
void status_acme_json(struct status_page_text *page, const struct acme *acme);
void status_acme_html(struct status_page_text *page, const struct acme *acme, int64_t now_s);

/* The values that a metric refers to. */
const uint64_t *status_values_of(const struct metric *metric, const struct status_values *values);

/* Writes a page: 0, -ENOMEM or -ENOBUFS. */
typedef int status_page(const struct status_values *values, struct buffer *out);
/* Text exposition format 0.0.4. */
status_page status_prometheus;
/* One object with the same names. */
status_page status_json;
/* HTML tables; the browser reloads the page every few seconds. */
status_page status_html;
/* The format of stub_status. */
status_page status_nginx;

#endif
