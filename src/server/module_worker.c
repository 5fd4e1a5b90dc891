/*
 * The functions of module.h that concern the worker.
 */
#include "server/module.h"

#include "server/worker.h"

#include <errno.h>
#include <sys/random.h>

/* Writes two digits for each byte. Returns true if they are all zero. */
static bool write_digits(const unsigned char *bytes, char *out, size_t digits)
{
    unsigned char any = 0;

    for (size_t i = 0; i < digits; i++) {
        out[i] = "0123456789abcdef"[i % 2 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4];
        any |= bytes[i / 2];
    }
    return any == 0;
}

/* One system call fills worker->random for many ids. */
int worker_random_id(struct worker *worker, char *out, size_t digits)
{
    unsigned bytes = (unsigned)(digits / 2);

    do {
        if (worker->random_left < bytes) {
            if (getrandom(worker->random, sizeof(worker->random), GRND_NONBLOCK) != sizeof(worker->random))
                return -EAGAIN;
            worker->random_left = sizeof(worker->random);
        }
        worker->random_left -= bytes;
    } while (write_digits(worker->random + worker->random_left, out, digits));
    return 0;
}

struct upstream_pool *worker_upstreams(struct worker *worker)
{
    return worker->upstreams;
}

struct cache_store *worker_cache(struct worker *worker, const struct cache_conf *conf)
{
    return worker->caches[conf->index];
}

struct file_cache *worker_file_cache(struct worker *worker)
{
    return worker->files;
}

unsigned worker_slot(const struct worker *worker)
{
    return worker->shared_index;
}

unsigned worker_number(const struct worker *worker)
{
    return worker->number;
}

void worker_counters(const struct worker *worker, struct counters_total *out_total)
{
    shared_total(worker->shared, out_total);
}

const struct status_zones *worker_status_zones(const struct worker *worker, unsigned *out_slots)
{
    *out_slots = __atomic_load_n(&worker->shared->slots_used, __ATOMIC_RELAXED);
    return &worker->configuration->zones;
}

void worker_timer(struct worker *worker, struct op *op, uint64_t delay_ms)
{
    loop_timer(&worker->loop, op, worker->loop.clock.monotonic_ms + delay_ms);
}

void worker_offload(struct worker *worker, struct op *op, int (*work)(void *argument), void *argument)
{
    loop_offload(&worker->loop, op, work, argument);
}

void worker_cancel(struct worker *worker, struct op *op)
{
    loop_cancel(&worker->loop, op);
}

struct body_reader *worker_reader(struct worker *worker)
{
    return &worker->reader.reader;
}

const struct clock *worker_clock(const struct worker *worker)
{
    return &worker->loop.clock;
}

void *worker_state(const struct worker *worker, const struct module *module)
{
    size_t index = 0;

    while (module_table[index] != module)
        index++;
    return worker->module_states[index];
}
