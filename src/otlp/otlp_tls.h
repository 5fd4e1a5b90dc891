/*
 * TLS to the collector, over a socket and within its deadline. OpenSSL seals the records.
 */
#ifndef OTLP_OTLP_TLS_H
#define OTLP_OTLP_TLS_H

#include "base/buffer.h"
#include "otlp/otlp_socket.h"

struct tls_session;

struct otlp_tls {
    const struct otlp_socket *socket;   /* not owned */
    struct tls_session *session;        /* NULL: none */
    struct buffer output;               /* sealed, not sent */
    int output_error;
    char *input;                        /* received bytes, which the session consumes before the next are received */
    /* The reason of the last failure, a constant text; NULL: the error number states it. */
    const char *fault;
};

/*
 * Performs the handshake with the collector `name` (a name or an address), whose certificate is verified as the context
 * demands. 0, -EPROTO, -ETIMEDOUT or another -errno. `tls` is finished by otlp_tls_finish in each case; `socket` and
 * `context` outlive it.
 */
MUST_CHECK int otlp_tls_connect(struct otlp_tls *tls, const struct otlp_socket *socket, struct tls_context *context,
                                struct str name);
/* Sends all bytes. 0, -EPROTO, -ETIMEDOUT or another -errno. */
MUST_CHECK int otlp_tls_write(struct otlp_tls *tls, struct str bytes);
/*
 * Returns the number of bytes read, 0 at the end (also without close_notify: a response states its own length),
 * -EPROTO, -ETIMEDOUT or another -errno.
 */
MUST_CHECK ssize_t otlp_tls_read(struct otlp_tls *tls, char *into, size_t size);
/* True if no decrypted bytes and no end of the connection wait to be read. */
MUST_CHECK bool otlp_tls_is_quiet(struct otlp_tls *tls);
/* Sends close_notify if there is room at once, and frees the session. Accepts a zeroed struct. */
void otlp_tls_finish(struct otlp_tls *tls);

#endif
