/*
 * The channel of c-ares. It exists only while queries are open: each new one reads the current resolv.conf.
 */
#include "io/resolver_private.h"

#include <stdio.h>
#include <sys/epoll.h>

static void socket_changed(void *owner, ares_socket_t fd, int readable, int writable)
{
    struct resolver *resolver = owner;
    struct epoll_event event = {.events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u), .data.fd = fd};

    if (event.events == 0)
        (void)epoll_ctl(resolver->watch_fd, EPOLL_CTL_DEL, fd, &event);
    else if (epoll_ctl(resolver->watch_fd, EPOLL_CTL_MOD, fd, &event) < 0)
        (void)epoll_ctl(resolver->watch_fd, EPOLL_CTL_ADD, fd, &event); /* on failure the query ends by its timeout */
}

uint64_t resolver_timeout_ms(const struct resolver *resolver)
{
    return resolver->settings.timeout_ms ? resolver->settings.timeout_ms : LIMIT_RESOLVE_TIMEOUT_MS;
}

void resolver_channel_close(struct resolver *resolver)
{
    ares_channel channel = resolver->channel;

    resolver->channel = NULL;
    if (channel)
        ares_destroy(channel);
}

/* Configured name servers are queried in three rounds, each with twice the timeout of the previous one. */
int resolver_channel_open(struct resolver *resolver)
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
        options.timeout = (int)(resolver_timeout_ms(resolver) / 8);
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
        resolver_channel_close(resolver); /* otherwise the next query would use the system's servers */
    return error;
}
