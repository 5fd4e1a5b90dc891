/*
 * The TLS context of an endpoint, and a session over a socket: the session gets received bytes, and its output is sent
 * after each of its steps.
 */
#include "otlp/otlp_tls.h"

#include "base/limits.h"
#include "tls/tls_client.h"

#include <errno.h>
#include <stdlib.h>

enum { INPUT_BYTES = 16384 };

int otlp_tls_context_open(struct otlp *otlp, struct str trusted, char *out_error, size_t error_size)
{
    const struct tls_client_settings settings = {.trusted = trusted, .verify = true};

    otlp_tls_context_close(otlp);
    otlp->tls = tls_client_context_create(&settings, out_error, error_size);
    return otlp->tls ? 0 : -EINVAL;
}

void otlp_tls_context_close(struct otlp *otlp)
{
    tls_context_destroy(otlp->tls);
    otlp->tls = NULL;
}

static void output_ciphertext(void *owner, struct str bytes)
{
    struct otlp_tls *tls = owner;
    int error = buffer_append(&tls->output, bytes);

    if (error < 0)
        tls->output_error = error;
}

/* Not called: the session of a client keeps its key, and seals its records itself. */
static void output_record(void *owner, uint8_t type, struct str plaintext)
{
}

static void output_key(void *owner, const struct record_key *key)
{
}

static const struct tls_output output = {
    .ciphertext = output_ciphertext, .record = output_record, .key_ready = output_key};

static int send_output(struct otlp_tls *tls)
{
    int error = tls->output_error;

    if (error == 0)
        error = otlp_socket_write(tls->socket, buffer_str(&tls->output));
    tls->output.length = 0;
    return error;
}

/* Returns as otlp_socket_read, and checks the deadline even if the peer's bytes never end. */
static ssize_t receive_input(struct otlp_tls *tls)
{
    ssize_t received = otlp_now_ms() >= tls->socket->deadline_ms
                           ? -ETIMEDOUT
                           : otlp_socket_read(tls->socket, tls->input, INPUT_BYTES);

    if (received > 0)
        tls_session_set_input(tls->session, str_of(tls->input, (size_t)received));
    return received;
}

static int fail_session(struct otlp_tls *tls, const char *fault)
{
    tls->fault = fault;
    return -EPROTO;
}

static int perform_handshake(struct otlp_tls *tls)
{
    for (;;) {
        int result = tls_session_handshake(tls->session);
        int error = send_output(tls); /* after a failure: the alert */
        ssize_t received;

        if (result != 0 && result != -EAGAIN)
            return fail_session(tls, tls_session_error(tls->session));
        if (result == 0 || error < 0)
            return error;
        received = receive_input(tls);
        if (received == 0)
            return fail_session(tls, "the collector closed the connection during the TLS handshake");
        if (received < 0)
            return (int)received;
    }
}

int otlp_tls_connect(struct otlp_tls *tls, const struct otlp_socket *socket, struct tls_context *context,
                     struct str name)
{
    int error;

    *tls = (struct otlp_tls){.socket = socket, .input = malloc(INPUT_BYTES)};
    buffer_init(&tls->output, LIMIT_HANDSHAKE_BYTES);
    tls->session = tls_session_create(context, &output, tls);
    if (!tls->input || !tls->session)
        return -ENOMEM;
    error = tls_session_set_server_name(tls->session, context, name);
    if (error == 0)
        error = perform_handshake(tls);
    if (error == -ETIMEDOUT)
        tls->fault = "the TLS handshake was not completed in time";
    return error;
}

int otlp_tls_write(struct otlp_tls *tls, struct str bytes)
{
    int error = 0;

    while (!str_empty(bytes) && error == 0) {
        struct str part = str_slice(bytes, 0, LIMIT_RECORD_PLAINTEXT);

        if (tls_session_write(tls->session, part) < 0)
            return fail_session(tls, tls_session_error(tls->session));
        error = send_output(tls);
        bytes = str_skip(bytes, part.length);
    }
    return error;
}

ssize_t otlp_tls_read(struct otlp_tls *tls, char *into, size_t size)
{
    for (;;) {
        ssize_t result = tls_session_read(tls->session, into, size), received;
        int error = send_output(tls); /* of answers to KeyUpdate */

        if (result >= 0)
            return result;
        if (result != -EAGAIN)
            return fail_session(tls, tls_session_error(tls->session));
        if (error < 0)
            return error;
        received = receive_input(tls);
        if (received <= 0)
            return received;
    }
}

bool otlp_tls_is_quiet(struct otlp_tls *tls)
{
    char byte;

    return tls_session_read(tls->session, &byte, 1) == -EAGAIN;
}

void otlp_tls_finish(struct otlp_tls *tls)
{
    if (tls->session)
        tls_session_shutdown(tls->session);
    if (tls->output.length > 0 && tls->output_error == 0)
        otlp_socket_offer(tls->socket, buffer_str(&tls->output));
    tls_session_destroy(tls->session);
    tls->session = NULL;
    buffer_finish(&tls->output);
    free(tls->input);
    tls->input = NULL;
}
