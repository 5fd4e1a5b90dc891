/*
 * Kernel TLS: probing for support and handing over a key (Documentation/networking/tls.rst). Transmit only (rule 1).
 */
#ifndef TLS_KTLS_H
#define TLS_KTLS_H

#include "tls/record.h"

#include <sys/socket.h>

/* System calls, replaceable in tests. */
struct ktls_calls {
    int (*setsockopt)(int fd, int level, int name, const void *value, socklen_t length);
    ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags);
    int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *length);
};
extern const struct ktls_calls ktls_calls_kernel;

/*
 * The reason why the kernel does not encrypt a connection, or a cipher on this machine. The names are those of
 * $tls_path_reason.
 */
enum ktls_reason {
    KTLS_OK,                        /* "ok" */
    KTLS_OFF,                       /* "off": ssl_ktls: off */
    KTLS_NOT_BUILT,                 /* "not-built" */
    KTLS_NO_MODULE,                 /* "no-module": TCP_ULP fails with ENOENT */
    KTLS_NO_PERMISSION,             /* "no-permission" */
    KTLS_ULP_REFUSED,               /* "ulp-refused": any other error of TCP_ULP */
    KTLS_CIPHER,                    /* "cipher": TLS_TX rejected this version and suite */
    KTLS_TX_REFUSED,                /* "tx-refused": during a connection, although the probe succeeded */
    KTLS_NO_KEY,                    /* "no-key": OpenSSL was built without kTLS and offers no key */
    KTLS_REASONS
};
/* The name of a reason, as listed above. */
const char *ktls_reason_name(enum ktls_reason reason);

/* Result of the probe per version (0: TLS 1.2, 1: TLS 1.3) and cipher. */
struct ktls_support {
    enum ktls_reason reason[2][RECORD_CHACHA20_POLY1305 + 1];
    bool rekey;                     /* a TLS 1.3 socket accepts a second key (Linux 6.14 and later) */
    int error;                      /* errno of the first refusal */
};

/*
 * Probes the kernel with a loopback connection and a dummy key per version and cipher (rule 19). Call it while the
 * process may load modules (CAP_NET_ADMIN), before privileges are dropped. Cannot fail: `out_support` has the reason
 * for missing support.
 */
void ktls_probe(const struct ktls_calls *calls, struct ktls_support *out_support);
/* True if the kernel encrypts with the cipher in at least one version of TLS; with at least one cipher. */
bool ktls_supports(const struct ktls_support *support, uint8_t cipher);
bool ktls_is_supported(const struct ktls_support *support);
/* Formats one log line: "kTLS: available (TLS 1.3: AES-128-GCM, ...)" or "kTLS: not available: ... (remedy)". */
struct str ktls_describe(const struct ktls_support *support, char *into, size_t size);

/*
 * Passes the key to the kernel: TCP_ULP, then TLS_TX with the current sequence number and explicit nonce. Nothing may
 * be queued or in flight (rule 5). KTLS_OK: the kernel encrypts all bytes sent on fd from now on. Otherwise the socket
 * sends bytes unchanged, and encryption continues in user space with the same key (rule 12).
 */
MUST_CHECK enum ktls_reason ktls_enable(const struct ktls_calls *calls, int fd, const struct record_key *key);
/* As ktls_enable; `*out_error` is the errno of the failing call, 0 if none failed. */
MUST_CHECK enum ktls_reason ktls_enable_error(const struct ktls_calls *calls, int fd, const struct record_key *key,
                                              int *out_error);

/*
 * Installs the next key of a kTLS socket after the KeyUpdate was sent as a record (Linux 6.14 and later, TLS 1.3).
 * 0, or -errno: the old key stays, and nothing may be sent with it any more.
 */
MUST_CHECK int ktls_rekey(const struct ktls_calls *calls, int fd, const struct record_key *key);

/*
 * Reads the sequence number of the next record of a kTLS socket from the kernel into `key`, whose version and cipher
 * are those of the socket; other fields are unchanged. 0 or -errno.
 */
MUST_CHECK int ktls_read_sequence(const struct ktls_calls *calls, int fd, struct record_key *key);

/*
 * Sends one record of another type on a kTLS socket (TLS_SET_RECORD_TYPE) without blocking. The length of
 * `plaintext`, or -errno.
 */
MUST_CHECK ssize_t ktls_send_record(const struct ktls_calls *calls, int fd, uint8_t type, struct str plaintext);

#endif
