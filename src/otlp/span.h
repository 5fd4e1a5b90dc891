/*
 * A finished span as a worker stores it in shared memory: fixed fields, then items in the order in which they were
 * added. The exporter reads a copy, and checks all its lengths.
 */
#ifndef OTLP_SPAN_H
#define OTLP_SPAN_H

#include "base/limits.h"
#include "base/str.h"

enum span_item_kind { SPAN_NAME, SPAN_TRACESTATE, SPAN_TEXT, SPAN_NUMBER };

enum { SPAN_TRACE_BYTES = 16, SPAN_ID_BYTES = 8 };

enum { SPAN_HAS_PARENT = 1, SPAN_FAILED = 2 };

struct span {
    uint64_t start_ns, end_ns;          /* since the epoch */
    uint8_t trace_id[SPAN_TRACE_BYTES];
    uint8_t span_id[SPAN_ID_BYTES];
    uint8_t parent_id[SPAN_ID_BYTES];   /* if SPAN_HAS_PARENT */
    uint16_t flags;                     /* SPAN_FAILED: status ERROR */
    uint16_t dropped;                   /* attributes for which there was no room */
    uint16_t length;                    /* bytes used of `items` */
    char items[LIMIT_SPAN_BYTES - 54];
};

_Static_assert(sizeof(struct span) == LIMIT_SPAN_BYTES, "a span fills its place");

struct span_item {
    enum span_item_kind kind;
    struct str key;                 /* empty for SPAN_NAME, SPAN_TRACESTATE */
    struct str text;                /* of all but SPAN_NUMBER; any bytes */
    uint64_t number;                /* SPAN_NUMBER */
};

/* Parses hexadecimal digits, two for each byte of `out`. The caller has checked that they are digits. */
void span_parse_id(struct str digits, uint8_t *out);

/* Sets the name, truncated to LIMIT_SPAN_TEXT bytes. Called before attributes are added. */
void span_set_name(struct span *span, struct str name);
/*
 * Sets the tracestate (W3C Trace Context), unless it is empty: of one longer than LIMIT_SPAN_TEXT bytes, the first
 * members that fit. Called after span_set_name, before attributes are added.
 */
void span_set_tracestate(struct span *span, struct str state);
/* Adds an attribute; its value is truncated to LIMIT_SPAN_TEXT bytes. Without room it is only counted in `dropped`. */
void span_add_text(struct span *span, struct str key, struct str value);
void span_add_number(struct span *span, struct str key, uint64_t value);

/*
 * Reads the item at *at (0: the first), and moves *at to the next. False: no more, or the rest is malformed. `span` is
 * a private copy, whose `length` may be any value.
 */
MUST_CHECK bool span_next(const struct span *span, size_t *at, struct span_item *out_item);
/*
 * True if a private copy is well-formed: a name, a tracestate or none, then attributes up to `length`; ids that are not
 * zero; and times in order.
 */
MUST_CHECK bool span_is_valid(const struct span *span);

#endif
