/*
 * The client connections of all workers. Each worker lists its own, and the one that has a connection closes it.
 */
#include "control/control.h"

#include "base/limits.h"
#include "server/worker_query.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { FIELD_ID };

const struct control_field control_connections_close_fields[] = {
    [FIELD_ID] = {.name = "id", .type = CONTROL_NUMBER, .required = true, .low = 1, .high = UINT64_MAX},
    {.name = NULL},
};

/* A row, with the worker that sent it. */
struct found {
    uint64_t pid;
    struct connection_row row;
};

/* A query in progress; freed when it ends. */
struct connections_task {
    struct control_call *call;
    struct worker_query *query;
    uint64_t id;                    /* the connection to be closed; 0: list */
    uint64_t connections;           /* of all workers */
    bool closed;
    size_t count;
    struct found found[LIMIT_CONTROL_CONNECTIONS];
};

static void task_response(void *owner, const struct query_response *response)
{
    struct connections_task *task = owner;

    task->closed |= response->closed > 0;
    if (__builtin_add_overflow(task->connections, response->connections, &task->connections))
        task->connections = UINT64_MAX;
    for (unsigned i = 0; i < response->row_count && task->count < LIMIT_CONTROL_CONNECTIONS; i++)
        task->found[task->count++] = (struct found){response->pid, response->rows[i]};
}

static int compare_numbers(const void *a, const void *b)
{
    const struct found *one = a, *two = b;

    return (one->row.number > two->row.number) - (one->row.number < two->row.number);
}

/* An empty text is null. */
static void write_optional(struct report *report, const char *text)
{
    report_text(report, text[0] ? str_from(text) : (struct str){NULL, 0});
}

static void write_row(struct report *report, const struct found *found)
{
    static const char *const states[CONNECTION_STATES] = {
        [CONNECTION_HANDSHAKE] = "handshake",
        [CONNECTION_READING] = "reading",
        [CONNECTION_WRITING] = "writing",
        [CONNECTION_WAITING] = "waiting",
    };
    const struct connection_row *row = &found->row;

    report_row(report);
    report_number(report, row->number);
    report_number(report, found->pid);
    report_text(report, str_from(row->client));
    report_text(report, str_from(row->listen));
    report_text(report, str_from(row->server));
    write_optional(report, row->protocol);
    write_optional(report, row->tls);
    write_optional(report, row->tls_path == PATH_NONE ? "" : wire_path_name((enum wire_path)row->tls_path));
    report_text(report, str_from(states[row->state]));
    report_number(report, row->requests);
    report_number(report, row->received);
    report_number(report, row->sent);
    report_number(report, row->seconds);
    write_optional(report, row->method);
    write_optional(report, row->path);
}

/* Lists what arrived, and how many connections are omitted. */
static int report_connections(struct connections_task *task, uint64_t silent)
{
    static const char *const columns[] = {"id",       "worker", "client",   "listen",   "server", "protocol",
                                          "tls",      "tls_path", "state",  "requests", "received", "sent",
                                          "seconds",  "method", "path",     NULL};
    struct report *report = &task->call->report;
    uint64_t omitted = task->connections > task->count ? task->connections - task->count : 0;

    qsort(task->found, task->count, sizeof(task->found[0]), compare_numbers);
    report_begin(report, "connections", columns);
    for (size_t i = 0; i < task->count; i++)
        write_row(report, &task->found[i]);
    report_end_partial(report, (const struct report_note[]){{"omitted", "connections that are not listed", omitted},
                                                            {"silent", "workers without a response", silent},
                                                            {NULL, NULL, 0}});
    return 200;
}

static int report_closed(struct connections_task *task, uint64_t silent)
{
    static const char *const columns[] = {"id", NULL};
    struct control_call *call = task->call;

    if (!task->closed && silent > 0)
        return control_fail(call, 503,
                            "workers without a response: %" PRIu64 "; the others do not have connection %" PRIu64,
                            silent, task->id);
    if (!task->closed)
        return control_fail(call, 404, "there is no connection %" PRIu64 "; GET /v1/connections lists them", task->id);
    report_begin(&call->report, "closed", columns);
    report_row(&call->report);
    report_number(&call->report, task->id);
    report_end(&call->report);
    return 200;
}

static void task_ended(void *owner, uint64_t workers, uint64_t responded)
{
    struct connections_task *task = owner;
    struct control_call *call = task->call;
    uint64_t silent = workers > responded ? workers - responded : 0;
    int status;

    if (workers == 0)
        status = control_fail(call, 503, "the master did not respond within %d ms", LIMIT_CONTROL_RESPONSE_MS);
    else
        status = task->id > 0 ? report_closed(task, silent) : report_connections(task, silent);
    free(task);
    control_finish(call, status);
}

static const struct query_events task_events = {.response = task_response, .ended = task_ended};

static void task_cancelled(struct control_call *call)
{
    struct connections_task *task = call->task;

    worker_query_cancel(task->query);
    free(task);
}

static int begin_task(struct control_call *call, uint64_t id)
{
    struct connections_task *task = calloc(1, sizeof(*task));

    if (!task)
        return control_fail(call, 500, "out of memory");
    task->call = call;
    task->id = id;
    task->query = worker_query_start(call->worker, id, &task_events, task);
    if (!task->query) {
        free(task);
        return control_fail(call, 503,
                            "the query cannot be sent: out of memory, or more than %d queries at once",
                            LIMIT_CONTROL_PENDING);
    }
    call->task = task;
    call->cancelled = task_cancelled;
    return CONTROL_PENDING;
}

int control_connections(struct control_call *call)
{
    return begin_task(call, 0);
}

int control_connections_close(struct control_call *call)
{
    return begin_task(call, call->values[FIELD_ID].number);
}
