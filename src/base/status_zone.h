/*
 * The zones of `status_zone`: counts of the requests of servers and of locations, and of the connections of stream's
 * servers, in memory that the master creates before it forks.
 *
 * Each zone has a row for each slot of a worker. A row has one writer at a time (the worker of that slot), so counting
 * is a plain store without locks, and no two workers write one cache line. The replacement of a worker continues its
 * row. Every process may write the rows: values are only printed. The position of a row follows from the slot and the
 * number of slots, of which each process has its own copy.
 */
#ifndef BASE_STATUS_ZONE_H
#define BASE_STATUS_ZONE_H

#include "base/arena.h"
#include "base/latency.h"
#include "base/must_check.h"
#include "base/str.h"

#include <stddef.h>

enum status_zone_kind { STATUS_ZONE_SERVER, STATUS_ZONE_LOCATION, STATUS_ZONE_STREAM, STATUS_ZONE_KINDS };

#define STATUS_ZONE_CLASSES 6       /* of a status by its first digit; [0]: others */

/* All members are uint64_t: status_zone_sum adds two structs as arrays. */
struct status_zone_counts {
    struct latency latency;         /* of all requests or connections */
    uint64_t classes[STATUS_ZONE_CLASSES];
    uint64_t sent, received;        /* bytes, as $bytes_sent and $request_length; in stream $bytes_received */
    uint64_t active;                /* stream: open connections */
};

struct status_zone_table;

struct status_zone {
    enum status_zone_kind kind;
    struct str name;                    /* in the arena of the configuration */
    struct status_zone_table *table;    /* NULL until status_zones_open */
    unsigned slots;                     /* rows of the table */
};

/* All zones of a configuration, in the order of the file. */
struct status_zones {
    struct status_zone **items;     /* in the arena of the configuration */
    size_t count, capacity;
};

/* An ended request, or an ended connection of stream. */
struct status_zone_request {
    int status;                     /* $status; 0: none */
    uint64_t took_us;
    uint64_t sent, received;
};

/*
 * Returns the zone of that kind and name, which is added if it is new; `name` stays valid as long as the arena. Sets
 * *out_zone on success. Returns 0, -ENOMEM, or -ENOSPC at LIMIT_STATUS_ZONES.
 */
MUST_CHECK int status_zones_add(struct status_zones *zones, struct arena *arena, enum status_zone_kind kind,
                                struct str name, struct status_zone **out_zone);
/*
 * Creates the memory of each zone for `slots` workers. A zone of `before` (may be NULL) with the same kind and name is
 * shared: its counts continue, and workers of both configurations count there. Returns 0 or -ENOMEM.
 */
MUST_CHECK int status_zones_open(struct status_zones *zones, const struct status_zones *before, unsigned slots);
/* Accepts zones that were not opened, or only in part. */
void status_zones_close(struct status_zones *zones);

/*
 * Counts a request or connection in the row of the worker at `slot`. Has no effect if the zone is NULL or not open, or
 * has no such slot.
 */
void status_zone_count(const struct status_zone *zone, unsigned slot, const struct status_zone_request *request);
/*
 * Adds one open connection of stream to `active`; status_zone_leave subtracts it. No effect in the same cases as
 * status_zone_count.
 */
void status_zone_enter(const struct status_zone *zone, unsigned slot);
void status_zone_leave(const struct status_zone *zone, unsigned slot);
/* Sets `active` of the slot to 0 in all zones: its worker has ended. Called by the master. */
void status_zones_abandon(const struct status_zones *zones, unsigned slot);
/* Returns the sums of the rows of the first `slots` slots; zeros if the zone is not open. */
void status_zone_sum(const struct status_zone *zone, unsigned slots, struct status_zone_counts *out_sum);

#endif
