/*
 * Parses a ClientHello without taking part in the handshake, for SNI (RFC 8446 4.1.2, RFC 6066 3), versions and ALPN
 * (RFC 8446 4.2.1, RFC 7301 3.1). Nothing is decrypted or sent.
 */
#ifndef TLS_CLIENT_HELLO_H
#define TLS_CLIENT_HELLO_H

#include "base/limits.h"
#include "base/must_check.h"
#include "base/str.h"

struct client_hello {
    char name[LIMIT_SERVER_NAME];   /* lower case, without a trailing dot */
    size_t name_length;             /* 0: no SNI */
    unsigned version;               /* the highest offered version: 0x0301 to 0x0304 for TLS 1.0 to 1.3; else 0 */
    char alpn[LIMIT_ALPN_TEXT];     /* offered ALPN names, as many as fit: "h2,http/1.1" */
    size_t alpn_length;
};

/* Progress over a ClientHello that arrives in pieces, so that each byte is examined once. Zeroed at first. */
struct client_hello_scan {
    size_t record_offset;           /* offset of the next record header */
    /* Message bytes in the records so far, including the outstanding rest of the last one. */
    size_t content;
    uint8_t message_header[4];      /* the first bytes of the message: type and length */
};

/*
 * False while the ClientHello that begins `bytes` (everything received so far) is incomplete: client_hello_read
 * would return -EAGAIN. True otherwise, also for other data: client_hello_read decides. Over all calls each record
 * header is examined once.
 */
bool client_hello_is_whole(struct client_hello_scan *scan, struct str bytes);

/*
 * Parses the bytes received so far, from the first on. 0, -EAGAIN: incomplete, or -EPROTO: not a ClientHello, or a
 * malformed one (inconsistent lengths, a repeated name, invalid bytes in a name). Bytes after it are ignored.
 */
MUST_CHECK int client_hello_read(struct str bytes, struct client_hello *out_hello);

#endif
