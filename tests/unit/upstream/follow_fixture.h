/* Two workers with a group of three servers that can change, and another one that cannot. */
#ifndef TEST_FOLLOW_FIXTURE_H
#define TEST_FOLLOW_FIXTURE_H

#include "upstream/upstream_follow.h"
#include "upstream/upstream_group.h"
#include "upstream/upstream_mode.h"
#include "upstream/upstream_servers.h"

#include "../http/suite.h"
#include "scripted.h"

#define WORKERS 2
#define SERVERS 3

static struct loop loop;
static struct log silent = {.level = LOG_EMERG};
static struct upstream_server servers[SERVERS];
static struct upstream_server other_server;
static struct upstream upstream, other;
static struct upstreams upstreams;
static struct upstream_zone *zone;
static struct upstream_pool *pools[WORKERS];

static inline void open_pool(unsigned worker, uint64_t configuration)
{
    pools[worker] = upstream_pool_create(&loop, &silent, &upstreams, zone, worker);
    ck_assert_ptr_nonnull(pools[worker]);
    upstream_pool_follow(pools[worker], configuration);
}

/* The servers 10.0.0.1 and 10.0.0.2, and the backup 10.0.0.3; a second group has no zone. */
static inline void open_all(void)
{
    static const char *const names[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};

    ck_assert_int_eq(scripted_open(&loop, &silent), 0);
    scripted_advance(&loop, 1000000);
    for (size_t i = 0; i < SERVERS; i++)
        ck_assert_int_eq(upstream_server_parse(str_from(names[i]), 80, &servers[i]), 0);
    servers[2].backup = true;
    ck_assert_int_eq(upstream_server_parse(STR("10.9.0.1"), 80, &other_server), 0);
    other = (struct upstream){.name = STR("other"), .servers = &other_server, .count = 1, .index = 1};
    upstream = (struct upstream){
        .name = STR("app"), .servers = servers, .count = SERVERS, .zone = true, .next = &other};
    upstreams = (struct upstreams){.first = &upstream, .count = 2};
    zone = upstream_zone_create(WORKERS);
    ck_assert_ptr_nonnull(zone);
    for (unsigned i = 0; i < WORKERS; i++)
        open_pool(i, 1);
}

static inline void close_pool(unsigned worker)
{
    upstream_pool_stop(pools[worker]);
    scripted_settle(&loop, 1000);
    upstream_pool_destroy(pools[worker]);
}

static inline void close_all(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        close_pool(i);
    ck_assert_uint_eq(loop.in_flight, 0);
    loop_close(&loop);
    upstream_zone_destroy(zone);
}

static inline struct upstream_group *group_of(unsigned worker)
{
    return upstream_pool_group(pools[worker], &upstream);
}

static inline int add_server(unsigned worker, const char *text, bool backup)
{
    struct upstream_server server;

    ck_assert_int_eq(upstream_server_parse(str_from(text), 80, &server), 0);
    server.backup = backup;
    server.weight = 2;
    return upstream_group_add_server(group_of(worker), &server);
}

static inline int remove_server(unsigned worker, const char *name)
{
    return upstream_group_remove_server(group_of(worker), str_from(name));
}

/* The peer with this name among those that the worker chooses for its next requests. NULL: none. */
static inline struct upstream_peer *find(unsigned worker, const char *name)
{
    struct upstream_peer *found = NULL;
    int error;

    for (int i = 0; i < 20; i++) {
        struct upstream_choice choice = {0};
        struct upstream_peer *peer = upstream_choose(group_of(worker), &choice, &error);

        if (peer && strcmp(peer->name, name) == 0)
            found = peer;
    }
    return found;
}

/* The workers that hold the entry of this server; 0: there is none. */
static inline uint64_t holders_of(const char *name)
{
    uint64_t holders = 0;

    for (int i = 0; i < LIMIT_UPSTREAM_PEERS; i++) {
        if (strcmp(upstream_zone_at(zone, i)->name, name) == 0)
            holders += upstream_zone_at(zone, i)->holders;
    }
    return holders;
}

static inline void pass_time(uint64_t ms)
{
    scripted_advance(&loop, ms);
    scripted_settle(&loop, 10);
}

#endif
