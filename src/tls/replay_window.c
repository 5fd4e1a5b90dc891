/*
 * A set of marks in buckets, each mark with a time. An entry is one word, written by compare-and-swap. After writing,
 * the writer checks the bucket again for the same mark, so that two concurrent writers detect each other.
 */
#include "tls/replay_window.h"

#include "base/limits.h"

#include <string.h>

static bool is_unexpired(uint64_t slot, uint32_t now_s)
{
    return slot != 0 && (int32_t)(now_s - (uint32_t)(slot >> 32)) <= LIMIT_EARLY_S;
}

/* Counts the mark in the bucket; `out_free` is the first usable slot, or REPLAY_SLOTS. */
static unsigned count_mark(uint64_t *slots, uint32_t mark, uint32_t now_s, unsigned *out_free, uint64_t *out_old)
{
    unsigned found = 0;

    *out_free = REPLAY_SLOTS;
    for (unsigned i = 0; i < REPLAY_SLOTS; i++) {
        uint64_t slot = __atomic_load_n(&slots[i], __ATOMIC_SEQ_CST);

        if (is_unexpired(slot, now_s)) {
            found += (uint32_t)slot == mark;
        } else if (*out_free == REPLAY_SLOTS) {
            *out_free = i;
            *out_old = slot;
        }
    }
    return found;
}

bool replay_window_add(struct replay_window *window, const uint8_t random[32], uint64_t now_ms)
{
    uint32_t now_s = (uint32_t)(now_ms / 1000 + 1), mark, bucket;
    uint64_t *slots, old = 0;
    unsigned place;

    if (__atomic_load_n(&window->closed, __ATOMIC_ACQUIRE))
        return false;
    memcpy(&mark, random, sizeof(mark));
    memcpy(&bucket, random + sizeof(mark), sizeof(bucket));
    slots = window->slots[bucket % REPLAY_BUCKETS];
    for (int tries = 0; tries < REPLAY_SLOTS; tries++) {
        if (count_mark(slots, mark, now_s, &place, &old) > 0 || place == REPLAY_SLOTS)
            return false;
        if (__atomic_compare_exchange_n(&slots[place], &old, (uint64_t)now_s << 32 | mark, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return count_mark(slots, mark, now_s, &place, &old) == 1;
    }
    return false;
}
