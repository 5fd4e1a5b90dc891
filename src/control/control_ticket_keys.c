/*
 * The keys of session tickets that the master generates, and their rotation. The name of a key is the first part of
 * each ticket that it encrypts.
 */
#include "control/control.h"

#include <openssl/crypto.h>

const struct control_field control_ticket_keys_fields[] = {{.name = NULL}};

static bool endpoint_uses(const struct endpoint *endpoint, bool files)
{
    for (size_t i = 0; endpoint->ssl && i < endpoint->server_count; i++) {
        const struct tls_settings *tls = &endpoint->servers[i]->tls;

        if (tls->session_tickets && (tls->ticket_key_count > 0) == files)
            return true;
    }
    return false;
}

/* A server issues tickets with generated keys or, with `files`, with those of files. */
static bool any_server_uses(const struct configuration *configuration, bool files)
{
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        if (endpoint_uses(&configuration->endpoints[i], files))
            return true;
    }
    return false;
}

static void write_key(struct report *report, const struct ticket_key *key, struct str state)
{
    char name[2 * sizeof(key->name)];

    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = "0123456789abcdef"[i % 2 ? key->name[i / 2] & 15 : key->name[i / 2] >> 4];
    report_row(report);
    report_text(report, str_of(name, sizeof(name)));
    report_text(report, state);
}

int control_ticket_keys(struct control_call *call)
{
    static const char *const columns[] = {"key", "state", NULL};
    bool used = any_server_uses(call->worker->configuration, false);
    struct ticket_key key;

    report_begin(&call->report, "ticket_keys", columns);
    for (unsigned age = 0; used && ticket_keys_get(&call->worker->shared->tickets, age, &key); age++)
        write_key(&call->report, &key, age == 0 ? STR("current") : STR("previous"));
    report_end(&call->report);
    OPENSSL_cleanse(&key, sizeof(key));
    return 200;
}

static uint64_t current_number(const struct control_call *call)
{
    return __atomic_load_n(&call->worker->shared->tickets.number, __ATOMIC_ACQUIRE);
}

/* All workers have the key: it is in memory that they share. */
static int key_rotated(struct control_call *call)
{
    const uint64_t *before = call->task;

    if (*before == current_number(call))
        return control_fail(call, 500, "no key could be generated; the error log has the cause");
    return control_ticket_keys(call);
}

static int refuse_rotation(struct control_call *call)
{
    if (any_server_uses(call->worker->configuration, true))
        return control_fail(call, 409, "the ticket keys are files of ssl_session_ticket_key: write a new one (openssl "
                            "rand 80 > FILE), name it first in this directive, keep the former one as the second, and "
                            "reload");
    return control_fail(call, 409,
                        "no server has session tickets: none listens with ssl, or ssl_session_tickets is off");
}

int control_ticket_keys_rotate(struct control_call *call)
{
    uint64_t *before = arena_alloc(&call->x->arena, sizeof(*before));

    if (!any_server_uses(call->worker->configuration, false))
        return refuse_rotation(call);
    if (!before)
        return control_fail(call, 500, "out of memory");
    *before = current_number(call);
    call->task = before;
    return control_request_master(call, CHANNEL_TICKET_KEY, 0, key_rotated);
}
