/*
 * The control socket (`control`): an HTTP API with JSON that shows and changes the state of the running server. Its
 * requests are handled by the worker that accepts the connection. Private to src/control, except for the module.
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include "control/report.h"
#include "http/exchange.h"
#include "server/module.h"
#include "server/worker_request.h"

enum { CONTROL_FIELDS_MAX = 10 };

enum control_type { CONTROL_TEXT, CONTROL_NUMBER, CONTROL_SWITCH, CONTROL_CHOICE };

/* A member of the JSON object that a request has as its body. A table of them ends with a row without a name. */
struct control_field {
    const char *name;
    enum control_type type;
    bool required;
    uint64_t low, high;             /* of a number */
    const char *const *choices;     /* of a choice; NULL-terminated */
};

/* The value of a field, by its index in the table. */
struct control_value {
    bool given;
    struct str text;                /* in the arena */
    uint64_t number;                /* of a switch: 0 or 1; of a choice: its index */
};

struct control_call;

/*
 * Performs the action of a resource. Returns 200 with the report, the result of control_fail, or CONTROL_PENDING:
 * control_finish follows, unless call->cancelled is called.
 */
typedef int control_verb(struct control_call *call);

/* One request. In the arena of its exchange. */
struct control_call {
    struct exchange *x;
    struct worker *worker;
    const struct control_resource *resource;
    struct control_value values[CONTROL_FIELDS_MAX];
    struct report report;                           /* of a response with status 200 */
    /* The body of such a response instead of the report; lives as long as the worker. data NULL: none. */
    struct str raw;
    char error[1024];                               /* of any other status */
    char *body;                                     /* in the arena, LIMIT_CONTROL_REQUEST bytes */
    size_t body_length;
    struct op wake;                                 /* timer: more of the body has arrived */
    void *task;                                     /* of a verb that returned CONTROL_PENDING */
    void (*cancelled)(struct control_call *call);   /* of such a verb: the client has disconnected */
    struct worker_request request;                  /* to the master */
    control_verb *master_responded;                 /* see control_request_master */
};

enum { CONTROL_PENDING = 0 };

/* One row of the API. */
struct control_resource {
    const char *path;
    enum method method;                 /* METHOD_GET stands for HEAD, too */
    control_verb *verb;
    const struct control_field *fields; /* of its body; NULL: the body is not read */
    const char *help;                   /* for GET /v1 */
};

/* control_response.c: formats the message of an error. Returns `status`. */
int control_fail(struct control_call *call, int status, const char *format, ...) PRINTF_LIKE(3, 4);
/* Responds to a call whose verb, or one of the steps before it, returned `status`. */
enum outcome control_respond(struct control_call *call, int status);
/* Responds to a pending request with `status`, as a verb returns it. Never called inside the verb. */
void control_finish(struct control_call *call, int status);

/*
 * control_fields.c: reads the values of the resource's fields from the body, a JSON object; an empty one has no
 * members. 200, or the result of control_fail.
 */
int control_fields_read(struct control_call *call, struct str body);

/*
 * control_query.c: the percent-decoded value of a parameter of the query, in the arena, and a number up to `high`. *out
 * does not change if the parameter is absent. 200, or the result of control_fail.
 */
int control_query_text(struct control_call *call, const char *name, struct str *out);
int control_query_number(struct control_call *call, const char *name, uint64_t high, uint64_t *out);

/*
 * control_master.c: sends a request to the master. When the master has responded, `responded` is called; its result,
 * which may not be CONTROL_PENDING, is passed to control_finish. Returns CONTROL_PENDING or the result of control_fail.
 */
int control_request_master(struct control_call *call, enum channel_kind kind, uint32_t index, control_verb *responded);

/* control_upstreams.c: the columns of a server of a group, and its row. */
extern const char *const control_peer_columns[];
void control_write_peer(struct control_call *call, const struct upstream_shared *peer);
/*
 * Returns the next entry in use from *index on, of any group if group.data is NULL, and moves *index past it. NULL:
 * none. `zone` may be NULL.
 */
struct upstream_shared *control_next_peer(struct upstream_zone *zone, int *index, struct str group);

/* control_certificates.c: whole days, rounded down; negative after the end of validity. */
int64_t control_days_left(int64_t until_s, int64_t now_s);

/* The verbs by subject: control_workers.c, control_upstreams.c, control_certificates.c, control_configuration.c. */
control_verb control_workers, control_upstreams, control_certificates, control_configuration,
    control_configuration_files, control_configuration_text;
/* control_upstreams_change.c */
extern const struct control_field control_upstreams_fields[];
control_verb control_upstreams_change;
/* control_upstreams_servers.c */
extern const struct control_field control_upstreams_add_fields[], control_upstreams_remove_fields[];
control_verb control_upstreams_add, control_upstreams_remove;
/* control_caches.c */
extern const struct control_field control_caches_purge_fields[];
control_verb control_caches, control_caches_purge;
/* The response for the name of a cache that does not exist. */
int control_no_such_cache(struct control_call *call, struct str name);
/* control_cache_entries.c */
control_verb control_caches_entries;
/* control_log_level.c */
extern const struct control_field control_log_level_fields[];
control_verb control_log_level, control_log_level_change;
/* control_ticket_keys.c */
extern const struct control_field control_ticket_keys_fields[];
control_verb control_ticket_keys, control_ticket_keys_rotate;
/* control_connections.c */
extern const struct control_field control_connections_close_fields[];
control_verb control_connections, control_connections_close;
/* control_limits.c */
control_verb control_limits, control_limits_keys;
#endif
