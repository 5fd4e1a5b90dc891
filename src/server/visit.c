/*
 * A visit: the server's part of an exchange, from its head to its last byte. What
 * modules ask of it is in module.c.
 */
#include "server/visit.h"

enum { STATUS_LEFT = 499 };

struct visit *visit_open(struct exchange *x, struct journey *journey, struct worker *worker)
{
    struct visit *visit = arena_zalloc(&x->arena, 1, sizeof(*visit));

    if (!visit)
        return NULL;
    visit->x = x;
    visit->journey = journey;
    visit->worker = worker;
    list_init(&visit->resumed);
    list_init(&visit->children);
    x->owner = visit;
    return visit;
}

int visit_status(const struct visit *visit)
{
    int status = visit->x->response.status;

    return status == 0 && visit->x->cancelled ? STATUS_LEFT : status;
}
