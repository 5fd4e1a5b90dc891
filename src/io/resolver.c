/*
 * Runs c-ares on the loop. An epoll descriptor watches the sockets of c-ares, and the loop polls that descriptor, since
 * c-ares opens and closes its sockets itself. Answers and timeouts are reported from the loop.
 */
#include "io/resolver_private.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

static uint64_t valid_ms(const struct resolver_query *query)
{
    uint64_t fixed_ms = query->resolver->settings.valid_ms;

    if (fixed_ms)
        return fixed_ms;
    if (query->ttl_s == UINT64_MAX)
        return LIMIT_RESOLVE_VALID_MS;
    if (query->ttl_s < LIMIT_RESOLVE_MIN_MS / 1000)
        return LIMIT_RESOLVE_MIN_MS;
    return query->ttl_s > LIMIT_RESOLVE_MAX_MS / 1000 ? LIMIT_RESOLVE_MAX_MS : query->ttl_s * 1000;
}

static void report_addresses(struct resolver_query *query)
{
    const struct resolver_answer answer = {
        .addresses = query->addresses,
        .count = query->count,
        .valid_ms = valid_ms(query),
        .reason = query->count ? NULL : ares_strerror(query->late ? ARES_ETIMEOUT : query->error)};

    if (query->cancelled)
        return;
    query->cancelled = true;
    query->done(query->owner, &answer);
}

/* Reports timeouts to the owners. The queries end later, since c-ares cannot cancel a single query. */
static void report_late(struct resolver *resolver)
{
    struct list *link = resolver->open.next;

    while (link != &resolver->open) {
        struct resolver_query *query = container_of(link, struct resolver_query, link);

        link = link->next;
        if (query->deadline_ms > resolver->loop->clock.monotonic_ms)
            continue;
        query->late = true;
        query->count = 0;
        query->deadline_ms = UINT64_MAX;
        report_addresses(query);
    }
}

static void report_finished(struct resolver *resolver)
{
    struct list *link;

    while ((link = list_pop(&resolver->finished)) != NULL) {
        struct resolver_query *query = container_of(link, struct resolver_query, link);

        report_addresses(query);
        free(query);
    }
}

static uint64_t next_deadline(const struct resolver *resolver)
{
    uint64_t now = resolver->loop->clock.monotonic_ms;
    uint64_t soonest = UINT64_MAX;
    struct timeval memory;
    const struct timeval *left;

    if (!list_empty(&resolver->finished))
        return now;
    for (const struct list *link = resolver->open.next; link != &resolver->open; link = link->next) {
        const struct resolver_query *query = container_of(link, const struct resolver_query, link);

        if (query->deadline_ms < soonest)
            soonest = query->deadline_ms;
    }
    left = resolver->channel ? ares_timeout(resolver->channel, NULL, &memory) : NULL;
    if (left) {
        uint64_t due = now + (uint64_t)left->tv_sec * 1000 + (uint64_t)left->tv_usec / 1000 + 1;

        if (due < soonest)
            soonest = due;
    }
    return soonest;
}

static void sockets_ready(struct op *op, int result)
{
    struct resolver *resolver = container_of(op, struct resolver, watch);
    struct epoll_event events[16];
    int count;

    if (resolver->stopping || result < 0)
        return;
    count = epoll_wait(resolver->watch_fd, events, 16, 0);
    for (int i = 0; i < count && resolver->channel; i++) {
        ares_socket_t fd = events[i].data.fd;
        bool error = events[i].events & (EPOLLERR | EPOLLHUP);

        ares_process_fd(resolver->channel, error || (events[i].events & EPOLLIN) ? fd : ARES_SOCKET_BAD,
                        error || (events[i].events & EPOLLOUT) ? fd : ARES_SOCKET_BAD);
    }
    resolver_schedule_wakeup(resolver);
}

static void resolver_timer_done(struct op *op, int result)
{
    struct resolver *resolver = container_of(op, struct resolver, timer);

    if (resolver->stopping || result < 0)
        return;
    if (resolver->channel)
        ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    report_late(resolver);
    report_finished(resolver);
    if (list_empty(&resolver->open) && list_empty(&resolver->finished))
        resolver_channel_close(resolver);
    resolver_schedule_wakeup(resolver);
}

void resolver_schedule_wakeup(struct resolver *resolver)
{
    uint64_t due = next_deadline(resolver);

    if (resolver->stopping)
        return;
    if (resolver->channel && op_idle(&resolver->watch))
        loop_poll(resolver->loop, &resolver->watch, resolver->watch_fd, POLLIN);
    if (due != UINT64_MAX)
        loop_timer_move(resolver->loop, &resolver->timer, due);
}

struct resolver *resolver_create(struct loop *loop, const struct resolver_settings *settings)
{
    struct resolver *resolver = calloc(1, sizeof(*resolver));

    if (!resolver)
        return NULL;
    resolver->watch_fd = epoll_create1(EPOLL_CLOEXEC);
    if (resolver->watch_fd < 0) {
        free(resolver);
        return NULL;
    }
    resolver->loop = loop;
    resolver->settings = *settings;
    resolver->watch.done = sockets_ready;
    resolver->timer.done = resolver_timer_done;
    list_init(&resolver->open);
    list_init(&resolver->finished);
    return resolver;
}

void resolver_stop(struct resolver *resolver)
{
    resolver->stopping = true;
    loop_cancel(resolver->loop, &resolver->watch);
    loop_cancel(resolver->loop, &resolver->timer);
}

void resolver_destroy(struct resolver *resolver)
{
    struct list *link;

    if (!resolver)
        return;
    resolver_channel_close(resolver); /* open queries end and move to `finished` */
    while ((link = list_pop(&resolver->finished)) != NULL)
        free(container_of(link, struct resolver_query, link));
    loop_close_fd(resolver->loop, resolver->watch_fd);
    free(resolver);
}
