/*
 * The master's session ticket keys: generated for all workers of all generations, in shared memory, so that any worker
 * can resume a session, also after a restart of a worker or a reload. A key encrypts tickets for the longest ticket
 * lifetime, decrypts them for the same time again, and is then erased.
 */
#include "master/master_state.h"

static uint64_t lifetime_of(const struct configuration *configuration)
{
    uint64_t longest_s = 0;

    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];

        for (size_t k = 0; endpoint->ssl && k < endpoint->server_count; k++) {
            if (endpoint->servers[k]->tls.session_timeout_s > longest_s)
                longest_s = endpoint->servers[k]->tls.session_timeout_s;
        }
    }
    return longest_s * 1000;
}

static uint64_t longest_lifetime_ms(const struct master *master)
{
    uint64_t longest_ms = 0;

    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        uint64_t lifetime_ms = lifetime_of(container_of(link, struct generation, link)->configuration);

        longest_ms = lifetime_ms > longest_ms ? lifetime_ms : longest_ms;
    }
    return longest_ms;
}

static int rotate_ticket_key(struct master *master)
{
    int result = ticket_keys_rotate(&master->shared->tickets);

    master->tickets_generated_ms = master->clock.monotonic_ms;
    if (result < 0)
        log_write(&master->error_log.log, LOG_ALERT,
                  "a key of session tickets could not be generated: no random numbers are available");
    return result;
}

int master_tickets_open(struct master *master, struct generation *generation)
{
    const struct configuration *configuration = generation->configuration;
    struct shared *shared = master->shared;

    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        if (configuration->endpoints[i].tls)
            tls_context_share(configuration->endpoints[i].tls, &shared->tickets, &shared->replay_window);
    }
    return shared->tickets.number > 0 || lifetime_of(configuration) == 0 ? 0 : rotate_ticket_key(master);
}

int master_tickets_next_ms(const struct master *master)
{
    uint64_t lifetime_ms = longest_lifetime_ms(master);

    return lifetime_ms == 0 ? -1 : master_wait_ms(master, master->tickets_generated_ms + lifetime_ms);
}

void master_tickets_check(struct master *master)
{
    if (master_tickets_next_ms(master) == 0 && rotate_ticket_key(master) == 0)
        log_write(&master->error_log.log, LOG_INFO, "session tickets are encrypted with a new key");
}

int master_tickets_rotate(struct master *master)
{
    return rotate_ticket_key(master);
}
