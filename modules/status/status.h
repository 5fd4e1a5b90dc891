/*
 * The status page in parts: status.c answers, status_metrics.c and status_upstreams.c know what there is to tell, status_page.c
 * writes it down. Private to this folder.
 */
#ifndef STATUS_H
#define STATUS_H

#include "base/buffer.h"
#include "master/counters.h"
#include "upstream/upstream_zone.h"

/* A status that is told by its first digit; [0]: others. */
#define STATUS_CLASSES 6

/* What the counters say at one moment, in the shape in which it is told. */
struct status_values {
    struct counters_total total;
    uint64_t one;                   /* what a fact "counts" */
    uint64_t classes[STATUS_CLASSES];
    uint64_t handshakes[3];         /* full, resumed, failed */
    uint64_t lookups[2];            /* hits, misses */
    uint64_t upstream_handshakes[3]; /* as `handshakes`, with servers behind */
    struct upstream_zone *upstreams; /* NULL: none */
    uint64_t zero_copy;             /* bytes */
    uint64_t zero_copy_share;       /* of all bytes sent, in millionths */
};

enum metric_type {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_FACT,                    /* a text: the label is all of it */
    METRIC_HISTOGRAM,               /* of request times: the only one */
};

struct metric {
    const char *name;               /* without "sluice_", by which each begins in Prometheus text */
    enum metric_type type;
    const char *help;
    const char *label;              /* its name; NULL: one value */
    const char *(*label_of)(unsigned index, char memory[8]);
    unsigned first, end;            /* of the values: indices from the uint64_t at `offset` on */
    size_t offset;                  /* in struct status_values */
    bool millionths;                /* told as a fraction: microseconds as seconds */
    bool sparse;                    /* what is 0 is not told */
};

/* Ends with a row without a name. */
extern const struct metric status_metrics[];

void status_collect(struct status_values *values);

/* A page as it is written. Errors are kept, so that it is written straight through. */
struct status_page_text {
    struct buffer *out;
    int error;
};

void status_print(struct status_page_text *page, const char *format, ...) PRINTF_LIKE(2, 3);
/* The same, with what would end a label escaped. */
void status_print_label(struct status_page_text *page, const char *text);

/* Servers behind, as a part of a page; nothing where there is none. */
void status_upstreams_prometheus(struct status_page_text *page, struct upstream_zone *zone);
void status_upstreams_json(struct status_page_text *page, struct upstream_zone *zone);

/* Each writes a page: 0, -ENOMEM or -ENOBUFS. */
typedef int status_page(const struct status_values *values, struct buffer *out);
/* Text exposition format 0.0.4. */
status_page status_prometheus;
/* One object, with the same names. */
status_page status_json;
/* As nginx's stub_status. */
status_page status_nginx;

#endif
