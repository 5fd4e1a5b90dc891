/*
 * A binary heap in an array. Each entry holds a copy of its deadline, so that comparisons access no op; op->mark is
 * the index. An entry's key is never later than its op's deadline; it may be earlier until the entry reaches the top.
 */
#include "io/timers.h"

#include <errno.h>
#include <stdlib.h>

struct entry {
    uint64_t key;
    struct op *op;
};

struct loop_timers {
    struct entry *entries;
    size_t count;
    size_t capacity;
};

struct loop_timers *timers_create(void)
{
    return calloc(1, sizeof(struct loop_timers));
}

void timers_destroy(struct loop_timers *timers)
{
    if (!timers)
        return;
    free(timers->entries);
    free(timers);
}

static void place_entry(struct loop_timers *timers, size_t at, struct entry entry)
{
    timers->entries[at] = entry;
    entry.op->mark = at;
}

static void sift_up(struct loop_timers *timers, size_t at, struct entry entry)
{
    while (at > 0 && timers->entries[(at - 1) / 2].key > entry.key) {
        place_entry(timers, at, timers->entries[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place_entry(timers, at, entry);
}

static void sift_down(struct loop_timers *timers, size_t at, struct entry entry)
{
    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < timers->count && timers->entries[child + 1].key < timers->entries[child].key)
            child++;
        if (child >= timers->count || timers->entries[child].key >= entry.key)
            break;
        place_entry(timers, at, timers->entries[child]);
        at = child;
    }
    place_entry(timers, at, entry);
}

int timers_add(struct loop_timers *timers, struct op *op)
{
    if (timers->count == timers->capacity) {
        size_t capacity = timers->capacity ? timers->capacity * 2 : 64;
        struct entry *grown = reallocarray(timers->entries, capacity, sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        timers->entries = grown;
        timers->capacity = capacity;
    }
    timers->count++;
    sift_up(timers, timers->count - 1, (struct entry){op->deadline_ms, op});
    return 0;
}

void timers_remove(struct loop_timers *timers, struct op *op)
{
    size_t at = (size_t)op->mark;
    struct entry last = timers->entries[--timers->count];

    if (at == timers->count)
        return;
    if (at > 0 && timers->entries[(at - 1) / 2].key > last.key)
        sift_up(timers, at, last);
    else
        sift_down(timers, at, last);
}

void timers_move(struct loop_timers *timers, struct op *op, uint64_t deadline_ms)
{
    op->deadline_ms = deadline_ms;
    if (deadline_ms < timers->entries[op->mark].key)
        sift_up(timers, (size_t)op->mark, (struct entry){deadline_ms, op});
}

uint64_t timers_next(const struct loop_timers *timers)
{
    return timers->count ? timers->entries[0].key : UINT64_MAX;
}

struct op *timers_due(struct loop_timers *timers, uint64_t now_ms)
{
    while (timers->count && timers->entries[0].key <= now_ms) {
        struct op *op = timers->entries[0].op;

        if (op->deadline_ms == timers->entries[0].key) {
            timers_remove(timers, op);
            return op;
        }
        sift_down(timers, 0, (struct entry){op->deadline_ms, op});
    }
    return NULL;
}
