/* Two workers with a group of upstream servers in shared memory, over a scripted loop. */
#ifndef TEST_SHARED_FIXTURE_H
#define TEST_SHARED_FIXTURE_H

#include "upstream/upstream_pool.h"

#include "../http/suite.h"
#include "../overwrite.h"
#include "scripted.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_SERVERS 100
#define WORKERS 2

static struct loop loop;
static struct log silent = {.level = LOG_EMERG};
static struct upstream_server servers[MAX_SERVERS];
static char texts[MAX_SERVERS][32];
static struct upstream upstream;
static struct upstreams upstreams;
static struct upstream_zone *zone;
static struct upstream_pool *pools[WORKERS];
static struct upstream_group *groups[WORKERS];

static inline void open_servers(enum upstream_balance balance, size_t count)
{
    ck_assert_int_eq(scripted_open(&loop, &silent), 0);
    scripted_advance(&loop, 1000000);
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "10.0.0.%zu", i + 1);
        ck_assert_int_eq(upstream_server_parse(str_from(texts[i]), 80, &servers[i]), 0);
    }
    upstream = (struct upstream){.name = STR("backend"), .servers = servers, .count = count, .balance = balance};
    upstreams = (struct upstreams){.first = &upstream, .count = 1};
    zone = upstream_zone_create(WORKERS);
    ck_assert_ptr_nonnull(zone);
}

static inline void open_pools(void)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        pools[i] = upstream_pool_create(&loop, &silent, &upstreams, zone, i);
        ck_assert_ptr_nonnull(pools[i]);
        groups[i] = upstream_pool_group(pools[i], &upstream);
    }
}

static inline void close_pools(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        upstream_pool_stop(pools[i]);
    scripted_settle(&loop, 1000);
    ck_assert_uint_eq(loop.in_flight, 0);
    for (unsigned i = 0; i < WORKERS; i++)
        upstream_pool_destroy(pools[i]);
    loop_close(&loop);
    upstream_zone_destroy(zone);
}

static inline struct upstream_peer *choose(unsigned worker)
{
    struct upstream_choice choice = {0};
    int error;

    return upstream_choose(groups[worker], &choice, &error);
}

/* Returns the number of the server that the worker chooses for its next request; 0: none. */
static inline int chosen_number(unsigned worker)
{
    struct upstream_peer *peer = choose(worker);

    return peer ? atoi(peer->name + 7) : 0;
}

static inline void advance_clock(uint64_t ms)
{
    scripted_advance(&loop, ms);
    scripted_settle(&loop, 10);
}

static inline struct upstream_peer *find(unsigned worker, int number)
{
    for (int i = 0; i < 300; i++) {
        struct upstream_peer *peer = choose(worker);

        if (peer && atoi(peer->name + 7) == number)
            return peer;
    }
    ck_abort_msg("server %d is not chosen", number);
    return NULL;
}

#endif
