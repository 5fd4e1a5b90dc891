/*
 * Priorities of responses (RFC 9218) and the order in which streams send.
 */
#ifndef HTTP_H2_PRIORITY_H
#define HTTP_H2_PRIORITY_H

#include "base/list.h"
#include "base/str.h"

#include <stdint.h>

#define H2_URGENCIES        8
#define H2_URGENCY_DEFAULT  3

struct h2_priority {
    uint8_t urgency;                /* 0 is sent first, 7 last */
    bool incremental;               /* the client can process the response in pieces */
};

/*
 * Applies a priority field value (RFC 9218 4): members u and i; others, and invalid values, are ignored. Absent
 * members keep the value of *priority.
 */
void h2_priority_parse(struct h2_priority *priority, struct str value);

/* The entry of a stream in h2_schedule; embedded in the stream. */
struct h2_schedule_entry {
    struct list link;               /* in a list of h2_schedule, or in none */
    struct h2_priority priority;
};

/*
 * Streams that have something to send, by urgency. Within an urgency, streams that are not incremental are served
 * whole, in the order in which they became ready; incremental ones take turns, frame by frame; and both kinds
 * alternate. The least urgent stream sends one of every H2_SHARE frames, so that every stream makes progress.
 */
struct h2_schedule {
    struct list whole[H2_URGENCIES], incremental[H2_URGENCIES];
    unsigned count;                 /* streams in the lists */
    uint8_t ready;                  /* bit per urgency that has a stream */
    uint8_t alternate;              /* bit per urgency: the next turn is an incremental stream's */
    uint8_t frames;                 /* served since the last turn of the least urgent stream */
};
#define H2_SHARE 32

void h2_schedule_init(struct h2_schedule *schedule);
/* Initialises an entry that is in no list. */
void h2_schedule_entry_init(struct h2_schedule_entry *entry, struct h2_priority priority);
/* Adds a stream at the end of its list; no effect on one that is ready. */
void h2_schedule_add(struct h2_schedule *schedule, struct h2_schedule_entry *entry);
/* Removes a stream; no effect on one that is not ready. */
void h2_schedule_remove(struct h2_schedule *schedule, struct h2_schedule_entry *entry);
/* Changes the priority; a ready stream moves to its new place. */
void h2_schedule_change(struct h2_schedule *schedule, struct h2_schedule_entry *entry, struct h2_priority priority);
/* Returns the stream that sends the next frame; it stays ready. NULL: no stream is ready. */
struct h2_schedule_entry *h2_schedule_next(struct h2_schedule *schedule);

#endif
