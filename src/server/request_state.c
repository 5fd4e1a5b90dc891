/*
 * The server's part of an exchange, from its head to its last byte. The functions for modules are in module.c.
 */
#include "server/request_state.h"

#include "server/connection.h"
#include "site/subjects.h"

enum { STATUS_CLIENT_CLOSED = 499 };

struct request_state *request_state_create(struct exchange *x, struct connection *connection, struct worker *worker)
{
    struct request_state *request = arena_zalloc(&x->arena, 1, sizeof(*request));

    if (!request)
        return NULL;
    request->x = x;
    request->user_values.arena = &x->arena;
    request->connection = connection;
    request->worker = worker;
    list_init(&request->resumed);
    list_init(&request->children);
    x->owner = request;
    return request;
}

static struct user_variable_values *user_values_of(const void *subject)
{
    return &request_state_of(subject)->user_values;
}

static void log_regex_error(const void *subject, const char *line)
{
    exchange_log_error(request_state_of(subject)->x, LOG_ERROR, "%s", line);
}

const struct user_variable_subject user_variables_of_exchanges = {user_values_of, log_regex_error};

int request_status(const struct request_state *request)
{
    int status = request->x->response.status;

    return status == 0 && request->x->cancelled ? STATUS_CLIENT_CLOSED : status;
}

void request_apply_settings(struct request_state *request)
{
    struct connection *connection = request->connection;

    request->x->settings = &request->location->session;
    if (request->parent) /* the connection belongs to the parent */
        return;
    connection->location = request->location;
    wire_apply_settings(&connection->wire, &request->location->wire);
}
