/* One group of upstream servers over a scripted loop. */
#ifndef TEST_BALANCE_FIXTURE_H
#define TEST_BALANCE_FIXTURE_H

#include "upstream/upstream_group.h"
#include "upstream/upstream_mode.h"

#include "../http/suite.h"
#include "scripted.h"

#define MAX_SERVERS 100

static struct loop loop;
static struct log silent = {.level = LOG_EMERG};
static struct upstream_server servers[MAX_SERVERS];
static struct upstream upstream;
static struct upstreams upstreams;
static struct upstream_pool *pool;
static struct upstream_group *group;

static inline void open_group(enum upstream_balance balance, const char *const *texts)
{
    size_t count = 0;

    ck_assert_int_eq(scripted_open(&loop, &silent), 0);
    for (; texts[count]; count++)
        ck_assert_int_eq(upstream_server_parse(str_from(texts[count]), 80, &servers[count]), 0);
    upstream = (struct upstream){.servers = servers,
                                 .count = count,
                                 .balance = balance,
                                 .keepalive = 2,
                                 .keepalive_timeout_ms = 1000,
                                 .keepalive_requests = 3};
    upstreams = (struct upstreams){.first = &upstream, .count = 1};
}

static inline void open_pool(void)
{
    pool = upstream_pool_create(&loop, &silent, &upstreams, NULL, 0);
    ck_assert_ptr_nonnull(pool);
    group = upstream_pool_group(pool, &upstream);
}

static inline void close_pool(void)
{
    upstream_pool_stop(pool);
    scripted_settle(&loop, 1000);
    ck_assert_uint_eq(loop.in_flight, 0);
    upstream_pool_destroy(pool);
    loop_close(&loop);
}

/* The peer of server `number`, in the order of the configuration. */
static inline struct upstream_peer *peer_at(unsigned number)
{
    struct list *link = group->peers.next;

    while (container_of(link, struct upstream_peer, link)->number != number)
        link = link->next;
    return container_of(link, struct upstream_peer, link);
}

static const char *const three[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3", NULL};

/* Returns the last digit of the address that is chosen for a new request; '-': no address. */
static inline char chosen_digit(struct str key)
{
    struct upstream_choice choice = {.key = key};
    int error;
    struct upstream_peer *peer = upstream_choose(group, &choice, &error);

    return peer ? peer->name[7] : '-';
}

static inline void choose_several(unsigned count, char *out)
{
    for (unsigned i = 0; i < count; i++)
        out[i] = chosen_digit(STR(""));
    out[count] = '\0';
}

#endif
