/*
 * Parts of mapped files between the bytes of an output block, so that one call sends heads in memory and the file.
 * Private to wire/.
 *
 * Parts may be appended while earlier ones are in flight: the vector of the send does not change.
 */
#ifndef WIRE_GATHER_H
#define WIRE_GATHER_H

#include "wire/file_view.h"

#include <sys/uio.h>

enum { GATHER_PARTS = 128 };

struct gather {
    unsigned count;                 /* of `parts` */
    unsigned parts_in_flight;       /* the first ones of `parts` */
    int count_in_flight;            /* of `vector`; 0: nothing is in flight */
    uint32_t bytes_until;           /* end of the block's bytes in flight */
    size_t length;                  /* sum of `parts` */
    struct gathered {
        uint32_t after;             /* the part follows the block's bytes before this position */
        uint32_t length;
        const char *bytes;
        struct file_view *view;     /* referenced */
    } parts[GATHER_PARTS];
    struct iovec vector[2 * GATHER_PARTS + 1];
};

/* NULL when out of memory. */
struct gather *gather_create(void);
/* Releases the views. Accepts NULL. */
void gather_destroy(struct wire_shared *shared, struct gather *gather);
/* True if one more part may be appended: below GATHER_PARTS parts and `max` bytes. `gather` may be NULL: true. */
static inline bool gather_has_room(const struct gather *gather, size_t max)
{
    return !gather || (gather->count < GATHER_PARTS && gather->length < max);
}
/* True if parts are not sent yet. `gather` may be NULL: false. */
static inline bool gather_is_waiting(const struct gather *gather)
{
    return gather && gather->count > 0;
}
/* Appends a part of the view after the block's bytes before `after`; there is room. */
void gather_append(struct gather *gather, uint32_t after, struct file_view *view, const char *bytes, uint32_t length);
/* Fills in the vector for the block's bytes from `from` to `until` and all parts; nothing is in flight. */
void gather_begin(struct gather *gather, char *block, uint32_t from, uint32_t until);
/* The vector was sent: releases its parts. Returns the number of bytes. */
size_t gather_sent(struct wire_shared *shared, struct gather *gather);

#endif
