/*
 * Requests of the workers that serve the control socket (`control`): changes in all processes. A worker may be
 * compromised, so each message is validated.
 */
#include "master/master_state.h"

#include "base/limits.h"

#include <limits.h>

/* Logs the change since the last line, unless the level is the same again, or a reload has replaced it. */
static void log_level_change(struct master *master)
{
    struct log *log = &master->error_log.log;
    struct control_lines *lines = &master->control_lines;
    enum log_level level = log->level, before = lines->level_before;

    if (!lines->level_waits)
        return;
    lines->level_waits = level != before && level == lines->level;
    if (!lines->level_waits || !log_limit_allows(&lines->levels, master->clock.monotonic_ms))
        return;
    lines->level_waits = false;
    if (before > level)
        log->level = before;
    log_write(log, LOG_NOTICE, "control: the error log has the level %s, before: %s", log_level_name(level),
              log_level_name(before));
    log->level = level;
}

static void log_ticket_keys(struct master *master)
{
    struct control_lines *lines = &master->control_lines;

    if (lines->ticket_keys == 0 || !log_limit_allows(&lines->tickets, master->clock.monotonic_ms))
        return;
    if (lines->ticket_keys > 1)
        log_write(&master->error_log.log, LOG_NOTICE,
                  "control: session tickets are encrypted with a new key, the last of %u", lines->ticket_keys);
    else
        log_write(&master->error_log.log, LOG_NOTICE, "control: session tickets are encrypted with a new key");
    lines->ticket_keys = 0;
}

void master_control_check(struct master *master)
{
    log_level_change(master);
    log_ticket_keys(master);
}

int master_control_next_ms(const struct master *master)
{
    const struct control_lines *lines = &master->control_lines;
    uint64_t levels_ms = lines->level_waits ? lines->levels.written_ms : UINT64_MAX;
    uint64_t tickets_ms = lines->ticket_keys > 0 ? lines->tickets.written_ms : UINT64_MAX;
    uint64_t first_ms = levels_ms < tickets_ms ? levels_ms : tickets_ms;

    return first_ms == UINT64_MAX ? -1 : master_wait_ms(master, first_ms + LIMIT_LOG_INTERVAL_MS);
}

/* Retired generations get the level, too. A starting one uses the error log of the master, which has the level. */
static void change_log_level(struct master *master, enum log_level level)
{
    struct log *log = &master->error_log.log;
    struct control_lines *lines = &master->control_lines;

    if (!lines->level_waits)
        lines->level_before = log->level;
    lines->level_waits = true;
    log->level = lines->level = level;
    log_level_change(master);
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        generation->log_level = level;
        children_send(master, generation, CHANNEL_LOG_LEVEL, level, -1);
    }
}

static void replace_ticket_key(struct master *master)
{
    if (master_tickets_rotate(master) < 0)
        return;
    if (master->control_lines.ticket_keys < UINT_MAX)
        master->control_lines.ticket_keys++;
    log_ticket_keys(master);
}

static bool apply_request(struct master *master, const struct channel_message *message)
{
    if (message->kind == CHANNEL_LOG_LEVEL && message->index <= LOG_DEBUG)
        change_log_level(master, (enum log_level)message->index);
    else if (message->kind == CHANNEL_TICKET_KEY && message->index == 0)
        replace_ticket_key(master);
    else
        return false;
    return true;
}

bool master_control_request(struct master *master, struct generation *generation, struct child *child,
                            const struct channel_message *message)
{
    bool allowed = child->ready && !str_empty(generation->configuration->main->control.text);

    if (allowed && message->kind == CHANNEL_QUERY)
        return master_query_forward(master, child, message);
    if (!allowed || !apply_request(master, message))
        return false;
    child_send(master, generation, child, CHANNEL_DONE, ++child->requests, -1);
    return true;
}
