/*
 * Runs c-ares on the loop. An epoll descriptor watches the sockets of c-ares, and the loop polls that descriptor, since
 * c-ares opens and closes its sockets itself. The channel exists only while queries are open: each new one reads the
 * current resolv.conf.
 */
#define CARES_NO_DEPRECATED
#include "io/resolver.h"

#include "base/limits.h"
#include "io/resolver_srv.h"

#include <ares.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct resolver {
    struct loop *loop;
    struct resolver_settings settings;
    ares_channel channel;           /* NULL: no open query */
    int watch_fd;                   /* epoll: the events that the channel's sockets wait for */
    struct op watch;
    struct op timer;
    struct list open;               /* struct resolver_query */
    struct list finished;           /* `done` has not run yet */
    bool stopping;
};

struct resolver_query {
    struct list link;
    struct resolver *resolver;
    resolver_done *done;
    void *owner;
    uint64_t deadline_ms;
    uint16_t port, priority, weight; /* of the requested name */
    unsigned steps;                 /* pending c-ares lookups */
    bool in_query;                    /* c-ares has not returned yet: an answer is from the hosts file */
    bool cancelled;
    bool late;                      /* a timeout was already reported to the owner */
    int error;                      /* the last c-ares error */
    uint64_t ttl_s;                 /* the smallest of all records; UINT64_MAX: none */
    size_t count;
    struct resolver_address addresses[LIMIT_UPSTREAM_ADDRESSES];
};

/* One name of a query; SRV has several. */
struct step {
    struct resolver_query *query;
    uint16_t port, priority, weight;
};

static void schedule_wakeup(struct resolver *resolver);

static void socket_changed(void *owner, ares_socket_t fd, int readable, int writable)
{
    struct resolver *resolver = owner;
    struct epoll_event event = {.events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u), .data.fd = fd};

    if (event.events == 0)
        (void)epoll_ctl(resolver->watch_fd, EPOLL_CTL_DEL, fd, &event);
    else if (epoll_ctl(resolver->watch_fd, EPOLL_CTL_MOD, fd, &event) < 0)
        (void)epoll_ctl(resolver->watch_fd, EPOLL_CTL_ADD, fd, &event); /* on failure the query ends by its timeout */
}

static uint64_t timeout_of(const struct resolver *resolver)
{
    return resolver->settings.timeout_ms ? resolver->settings.timeout_ms : LIMIT_RESOLVE_TIMEOUT_MS;
}

static void close_channel(struct resolver *resolver)
{
    ares_channel channel = resolver->channel;

    resolver->channel = NULL;
    if (channel)
        ares_destroy(channel);
}

/*
 * Opens the channel. Configured name servers are queried in three rounds, each with twice the timeout of the previous
 * one.
 */
static int open_channel(struct resolver *resolver)
{
    struct ares_options options = {.sock_state_cb = socket_changed, .sock_state_cb_data = resolver};
    int flags = ARES_OPT_SOCK_STATE_CB;
    char lookups[] = "fb"; /* the hosts file, then DNS */
    char servers[1024];
    int error;

    if (resolver->channel)
        return ARES_SUCCESS;
    if (!str_empty(resolver->settings.servers)) {
        options.flags = ARES_FLAG_NOSEARCH;
        options.lookups = lookups;
        options.tries = 3;
        options.timeout = (int)(timeout_of(resolver) / 8);
        if (options.timeout > LIMIT_RESOLVE_TRY_MS)
            options.timeout = LIMIT_RESOLVE_TRY_MS;
        if (options.timeout < 1)
            options.timeout = 1;
        flags |= ARES_OPT_FLAGS | ARES_OPT_LOOKUPS | ARES_OPT_TRIES | ARES_OPT_TIMEOUTMS;
    }
    error = ares_init_options(&resolver->channel, &options, flags);
    if (error != ARES_SUCCESS) {
        resolver->channel = NULL;
        return error;
    }
    if (!str_empty(resolver->settings.servers)) {
        snprintf(servers, sizeof(servers), STR_FMT, STR_ARG(resolver->settings.servers));
        error = ares_set_servers_ports_csv(resolver->channel, servers);
    }
    if (error != ARES_SUCCESS)
        close_channel(resolver); /* otherwise the next query would use the system's servers */
    return error;
}

static void query_finish(struct resolver_query *query)
{
    if (query->steps > 0)
        return;
    list_remove(&query->link);
    list_push(&query->resolver->finished, &query->link);
}

static void lower_ttl(struct resolver_query *query, int ttl_s)
{
    uint64_t ttl = ttl_s > 0 ? (uint64_t)ttl_s : 0;

    if (query->in_query && ttl == 0)
        return; /* an entry of the hosts file has no TTL */
    if (ttl < query->ttl_s)
        query->ttl_s = ttl;
}

static void add_node(struct step *step, const struct ares_addrinfo_node *node)
{
    struct resolver_query *query = step->query;
    struct resolver_address *address = &query->addresses[query->count];

    if (query->count == LIMIT_UPSTREAM_ADDRESSES || node->ai_addrlen > sizeof(address->socket))
        return;
    *address =
        (struct resolver_address){.length = node->ai_addrlen, .priority = step->priority, .weight = step->weight};
    memcpy(&address->socket, node->ai_addr, node->ai_addrlen);
    if (address->socket.ss_family == AF_INET)
        ((struct sockaddr_in *)&address->socket)->sin_port = htons(step->port);
    else
        ((struct sockaddr_in6 *)&address->socket)->sin6_port = htons(step->port);
    lower_ttl(query, node->ai_ttl);
    query->count++;
}

static void addresses_received(void *owner, int status, int timeouts, struct ares_addrinfo *found)
{
    struct step *step = owner;
    struct resolver_query *query = step->query;

    if (status != ARES_SUCCESS)
        query->error = status;
    for (const struct ares_addrinfo_node *node = found ? found->nodes : NULL; node; node = node->ai_next)
        add_node(step, node);
    for (const struct ares_addrinfo_cname *name = found ? found->cnames : NULL; name; name = name->next)
        lower_ttl(query, name->ttl);
    if (found)
        ares_freeaddrinfo(found);
    free(step);
    query->steps--;
    query_finish(query);
}

static void query_addresses(struct resolver_query *query, const char *host, uint16_t port, uint16_t priority,
                            uint16_t weight)
{
    const struct resolver_settings *settings = &query->resolver->settings;
    const struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT,
                                              .ai_family = settings->no_ipv4   ? AF_INET6
                                                           : settings->no_ipv6 ? AF_INET
                                                                               : AF_UNSPEC,
                                              .ai_socktype = SOCK_STREAM};
    struct step *step = malloc(sizeof(*step));

    if (!step) {
        query->error = ARES_ENOMEM;
        return;
    }
    *step = (struct step){.query = query, .port = port, .priority = priority, .weight = weight};
    query->steps++;
    ares_getaddrinfo(query->resolver->channel, host, NULL, &hints, addresses_received, step);
}

static void records_received(void *owner, int status, int timeouts, unsigned char *bytes, int length)
{
    struct srv_record records[LIMIT_UPSTREAM_ADDRESSES];
    struct resolver_query *query = owner;
    int count = 0;

    if (status == ARES_SUCCESS)
        count = srv_read(bytes, (size_t)length, records, LIMIT_UPSTREAM_ADDRESSES);
    query->error = status != ARES_SUCCESS ? status : count < 0 ? ARES_EBADRESP : ARES_ENODATA;
    for (int i = 0; i < count; i++) {
        lower_ttl(query, (int)(records[i].ttl_s > INT32_MAX ? INT32_MAX : records[i].ttl_s));
        query_addresses(query, records[i].target, records[i].port, records[i].priority, records[i].weight);
    }
    query->steps--;
    query_finish(query);
}

static void query_records(struct resolver_query *query, struct str host, struct str service)
{
    char name[2 * LIMIT_HOST + 16];
    bool short_form = str_find(service, '.') < 0;

    snprintf(name, sizeof(name), "%s" STR_FMT "%s." STR_FMT, short_form ? "_" : "", STR_ARG(service),
             short_form ? "._tcp" : "", STR_ARG(host));
    query->steps++;
    ares_query(query->resolver->channel, name, SRV_CLASS_IN, SRV_TYPE, records_received, query);
}

struct resolver_query *resolver_query_start(struct resolver *resolver, struct str host, uint16_t port,
                                            struct str service, resolver_done *done, void *owner)
{
    struct resolver_query *query = calloc(1, sizeof(*query));
    char name[LIMIT_HOST + 1];

    if (!query)
        return NULL;
    query->resolver = resolver;
    query->done = done;
    query->owner = owner;
    query->ttl_s = UINT64_MAX;
    query->deadline_ms = resolver->loop->clock.monotonic_ms + timeout_of(resolver);
    list_init(&query->link);
    list_push(&resolver->open, &query->link);
    query->error = open_channel(resolver);
    query->steps++; /* held until all lookups are started: an answer may arrive inside the call */
    query->in_query = true;
    snprintf(name, sizeof(name), STR_FMT, STR_ARG(host));
    if (query->error == ARES_SUCCESS && str_empty(service))
        query_addresses(query, name, port, 0, 0);
    else if (query->error == ARES_SUCCESS)
        query_records(query, host, service);
    query->in_query = false;
    query->steps--;
    query_finish(query);
    schedule_wakeup(resolver);
    return query;
}

void resolver_query_cancel(struct resolver_query *query)
{
    if (query)
        query->cancelled = true;
}

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
    schedule_wakeup(resolver);
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
        close_channel(resolver);
    schedule_wakeup(resolver);
}

/* Waits for the next event: a socket's readiness, or a deadline. */
static void schedule_wakeup(struct resolver *resolver)
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
    close_channel(resolver); /* open queries end and move to `finished` */
    while ((link = list_pop(&resolver->finished)) != NULL)
        free(container_of(link, struct resolver_query, link));
    loop_close_fd(resolver->loop, resolver->watch_fd);
    free(resolver);
}
