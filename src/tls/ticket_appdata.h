/*
 * Data stored in a session, in a ticket or in the session cache, in addition to the data of OpenSSL. Private to tls/.
 */
#ifndef TLS_TICKET_APPDATA_H
#define TLS_TICKET_APPDATA_H

#include "base/must_check.h"

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

struct tls_session;

/* Data stored in a ticket beside its session. */
struct ticket_appdata {
    bool accepted;                  /* the client satisfied ssl_verify_client */
    int64_t clock_offset_ms;        /* tls_clock_offset_ms when the ticket was made */
};
/* Difference between the wall clock and the session's monotonic clock. */
int64_t tls_clock_offset_ms(const struct tls_session *session);
/* Reads the data of a session resumed from a ticket. False: there is none. */
MUST_CHECK bool tls_ticket_appdata(SSL_SESSION *resumed, struct ticket_appdata *out_appdata);

/* Sets lifetime and struct ticket_appdata of a new session by its server's settings. False: out of memory. */
MUST_CHECK bool tls_session_set_appdata(SSL *ssl, SSL_SESSION *made);

#endif
