/*
 * The first message of a TLS client, read by somebody who does not take part: for the name that it asks for
 * (RFC 8446 4.1.2, RFC 6066 3), and what it speaks (RFC 8446 4.2.1, RFC 7301 3.1). Nothing is decrypted, nothing is answered.
 */
#ifndef TLS_CLIENT_HELLO_H
#define TLS_CLIENT_HELLO_H

#include "base/limits.h"
#include "base/must_check.h"
#include "base/str.h"

struct client_hello {
    char name[LIMIT_SERVER_NAME];   /* lower case, without a last dot */
    size_t name_length;             /* 0: it asks for none */
    unsigned version;               /* the newest it speaks: 0x0301 to 0x0304 for TLS 1.0 to 1.3; else 0 */
    char alpn[LIMIT_ALPN_TEXT];     /* what it speaks above, as far as there is room: "h2,http/1.1" */
    size_t alpn_length;
};

/* How much of a ClientHello has come, so that it is read once and not at every piece. Zeroed at the beginning. */
struct client_hello_scan {
    size_t record;                  /* where the next header of a record begins, if it has come */
    size_t content;                 /* bytes of the message in the records so far, what is still to come of the last one included */
    uint8_t front[4];               /* the first bytes of the message: its type and its length */
};

/*
 * False while a ClientHello that begins `bytes`, all that came so far, is not whole: client_hello_read would give -EAGAIN. True otherwise,
 * also for what is no ClientHello: client_hello_read decides. Over all calls each record is looked at once.
 */
bool client_hello_is_whole(struct client_hello_scan *scan, struct str bytes);

/*
 * Reads the bytes that a client has sent so far, from the first on: 0, -EAGAIN: more are needed, or -EPROTO: that is no ClientHello, or not
 * one that keeps to the letter (lengths that do not agree, a name twice, a name with odd bytes in it). Bytes behind it are not looked at.
 */
MUST_CHECK int client_hello_read(struct str bytes, struct client_hello *out_hello);

#endif
