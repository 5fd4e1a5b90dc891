/*
 * A visit: the server's part of an exchange, from its head to its last byte. What
 * modules ask of it is in module.c.
 */
#include "server/visit.h"

#include "site/subjects.h"

enum { STATUS_LEFT = 499 };

struct visit *visit_open(struct exchange *x, struct connection *connection, struct worker *worker)
{
    struct visit *visit = arena_zalloc(&x->arena, 1, sizeof(*visit));

    if (!visit)
        return NULL;
    visit->x = x;
    visit->own.arena = &x->arena;
    visit->connection = connection;
    visit->worker = worker;
    list_init(&visit->resumed);
    list_init(&visit->children);
    x->owner = visit;
    return visit;
}

static struct own_values *values_of(const void *subject)
{
    return &visit_of(subject)->own;
}

static void say(const void *subject, const char *line)
{
    exchange_say(visit_of(subject)->x, LOG_ERROR, "%s", line);
}

const struct own_subject own_of_exchanges = {values_of, say};

int visit_status(const struct visit *visit)
{
    int status = visit->x->response.status;

    return status == 0 && visit->x->cancelled ? STATUS_LEFT : status;
}
