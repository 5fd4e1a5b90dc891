/*
 * One query: the lookups of its names by c-ares, and the addresses that they return.
 */
#include "io/resolver_private.h"

#include "io/resolver_srv.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

/* One name of a query; SRV has several. */
struct step {
    struct resolver_query *query;
    uint16_t port, priority, weight;
};

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
    query->deadline_ms = resolver->loop->clock.monotonic_ms + resolver_timeout_ms(resolver);
    list_init(&query->link);
    list_push(&resolver->open, &query->link);
    query->error = resolver_channel_open(resolver);
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
    resolver_schedule_wakeup(resolver);
    return query;
}

void resolver_query_cancel(struct resolver_query *query)
{
    if (query)
        query->cancelled = true;
}
