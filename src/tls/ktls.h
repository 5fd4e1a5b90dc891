/*
 * What the kernel offers of TLS, and handing it a key: Documentation/networking/tls.rst.
 * TX only: receiving stays with OpenSSL (rule 1).
 */
#ifndef TLS_KTLS_H
#define TLS_KTLS_H

#include "tls/record.h"

#include <sys/socket.h>

/* The kernel's calls, replaced by tests. */
struct ktls_calls {
    int (*setsockopt)(int fd, int level, int name, const void *value, socklen_t length);
    ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags);
    int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *length);
};
extern const struct ktls_calls ktls_calls_kernel;

/* Why a connection, or a cipher on this machine, is not encrypted by the kernel. The names are $tls_path_reason's. */
enum ktls_reason {
    KTLS_OK,                        /* "ok" */
    KTLS_OFF,                       /* "off": ssl_ktls: off */
    KTLS_NOT_BUILT,                 /* "not-built" */
    KTLS_NO_MODULE,                 /* "no-module": TCP_ULP says ENOENT */
    KTLS_NO_PERMISSION,             /* "no-permission" */
    KTLS_ULP_REFUSED,               /* "ulp-refused": any other answer to TCP_ULP */
    KTLS_CIPHER,                    /* "cipher": TLS_TX refused this version and suite */
    KTLS_TX_REFUSED,                /* "tx-refused": in the middle of a connection, after the probe said yes */
    KTLS_NO_KEY,                    /* "no-key": OpenSSL was built without kTLS, and offers none */
    KTLS_REASONS
};
/* The name that stands beside it above. */
const char *ktls_reason_name(enum ktls_reason reason);

/* What the probe found, per version (0: TLS 1.2, 1: TLS 1.3) and cipher. */
struct ktls_support {
    enum ktls_reason reason[2][RECORD_CHACHA20_POLY1305 + 1];
    bool rekey;                     /* a promoted TLS 1.3 socket takes a second key (6.14 and later) */
    int error;                      /* errno of the first refusal */
};

/*
 * Asks the kernel by a real loopback connection with a dummy key per version and cipher (rule 19). To be called where the module may
 * still be loaded (CAP_NET_ADMIN), before privileges are dropped. Never fails: what cannot be had carries its reason.
 */
void ktls_probe(const struct ktls_calls *calls, struct ktls_support *out_support);
/* One line for the log: "kTLS: available (TLS 1.3: AES-128-GCM, ...)" or "kTLS: not available: ... (what to do)". */
struct str ktls_describe(const struct ktls_support *support, char *into, size_t size);

/*
 * Hands the key over: TCP_ULP, then TLS_TX with the current sequence number and explicit nonce (rule 5: nothing may be queued or in flight).
 * KTLS_OK: every later byte sent on fd is encrypted by the kernel. Anything else: the socket still passes bytes
 * through, and the connection goes on in user space with the same key (rule 12).
 */
MUST_CHECK enum ktls_reason ktls_promote(const struct ktls_calls *calls, int fd, const struct record_key *key);
/* The same; `*out_error` is the errno of the call that refused, 0 where none did. */
MUST_CHECK enum ktls_reason ktls_promote_error(const struct ktls_calls *calls, int fd, const struct record_key *key, int *out_error);

/*
 * Gives a promoted socket its next key, after the KeyUpdate was sent as a record (kernels from 6.14 on, TLS 1.3). 0, or
 * -errno: the old key stays in force, with which nothing may be sent any more.
 */
MUST_CHECK int ktls_rekey(const struct ktls_calls *calls, int fd, const struct record_key *key);

/*
 * The number of the next record on a promoted socket, as the kernel counts: into `key`, whose version and cipher are those of the
 * socket; nothing else of it is touched. 0 or -errno.
 */
MUST_CHECK int ktls_count(const struct ktls_calls *calls, int fd, struct record_key *key);

/* Sends one record of another type on a promoted socket (TLS_SET_RECORD_TYPE), without waiting. Bytes (all of them), or -errno. */
MUST_CHECK ssize_t ktls_send_record(const struct ktls_calls *calls, int fd, uint8_t type, struct str plaintext);

#endif
