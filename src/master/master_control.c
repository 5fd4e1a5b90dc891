/*
 * Requests of the workers that serve the control socket (`control`): changes in all processes. A worker may be
 * compromised, so each message is validated.
 */
#include "master/master_state.h"

/* Also of generations that end. One that starts has the error log of the master already. */
static void change_log_level(struct master *master, enum log_level level)
{
    struct log *log = &master->error_log.log;
    enum log_level before = log->level;

    if (level > before)
        log->level = level;
    if (level != before)
        log_write(log, LOG_NOTICE, "control: the error log has the level %s, before: %s", log_level_name(level),
                  log_level_name(before));
    log->level = level;
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        generation->log_level = level;
        children_send(master, generation, CHANNEL_LOG_LEVEL, level, -1);
    }
}

static bool apply_request(struct master *master, const struct channel_message *message)
{
    if (message->kind == CHANNEL_LOG_LEVEL && message->index <= LOG_DEBUG)
        change_log_level(master, (enum log_level)message->index);
    else if (message->kind == CHANNEL_TICKET_KEY && message->index == 0)
        master_tickets_rotate(master);
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
