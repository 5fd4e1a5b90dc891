/*
 * The two system calls that pass a key to the kernel, and the one that sends a record of another type.
 */
#include "tls/ktls.h"

#include "base/limits.h"
#include "build_options.h"
#include "tls/ktls_layout.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>

#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#ifndef TCP_ULP
#define TCP_ULP 31
#endif

const struct ktls_calls ktls_calls_kernel = {setsockopt, sendmsg, getsockopt};

const char *ktls_reason_name(enum ktls_reason reason)
{
    static const char *const names[KTLS_REASONS] = {
        [KTLS_OK] = "ok",
        [KTLS_OFF] = "off",
        [KTLS_NOT_BUILT] = "not-built",
        [KTLS_NO_MODULE] = "no-module",
        [KTLS_NO_PERMISSION] = "no-permission",
        [KTLS_ULP_REFUSED] = "ulp-refused",
        [KTLS_CIPHER] = "cipher",
        [KTLS_TX_REFUSED] = "tx-refused",
        [KTLS_NO_KEY] = "no-key",
    };
    return (unsigned)reason < KTLS_REASONS ? names[reason] : "unknown";
}

#ifdef HAVE_KTLS

static int set_option(const struct ktls_calls *calls, int fd, int level, int name, const void *value, size_t length)
{
    return calls->setsockopt(fd, level, name, value, (socklen_t)length) < 0 ? -errno : 0;
}

static int set_crypto_key(const struct ktls_calls *calls, int fd, const struct record_key *key)
{
    union ktls_key layout;
    size_t length = ktls_key_write(key, &layout);
    int error = length ? set_option(calls, fd, SOL_TLS, TLS_TX, &layout, length) : -EINVAL;

    OPENSSL_cleanse(&layout, sizeof(layout));
    return error;
}

static enum ktls_reason ulp_reason(int error)
{
    switch (-error) {
    case 0:
    case EEXIST: /* an earlier attempt stopped here */
        return KTLS_OK;
    case ENOENT:
        return KTLS_NO_MODULE;
    case EPERM:
    case EACCES:
        return KTLS_NO_PERMISSION;
    default:
        return KTLS_ULP_REFUSED;
    }
}

enum ktls_reason ktls_enable_error(const struct ktls_calls *calls, int fd, const struct record_key *key,
                                   int *out_error)
{
    int error = set_option(calls, fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls"));
    enum ktls_reason reason = ulp_reason(error);

    *out_error = -error;
    if (reason != KTLS_OK)
        return reason;
    /* The last step: if it fails, nothing has to be undone. */
    error = set_crypto_key(calls, fd, key);
    *out_error = -error;
    return error == 0 ? KTLS_OK : KTLS_TX_REFUSED;
}

int ktls_rekey(const struct ktls_calls *calls, int fd, const struct record_key *key)
{
    return set_crypto_key(calls, fd, key);
}

/* The kernel requires the exact length of the cipher's struct and returns the key in it, too. */
int ktls_read_sequence(const struct ktls_calls *calls, int fd, struct record_key *key)
{
    struct record_key kernel_key;
    union ktls_key layout;
    socklen_t length = (socklen_t)ktls_key_write(key, &layout);
    int error = calls->getsockopt(fd, SOL_TLS, TLS_TX, &layout, &length) < 0 ? -errno : 0;

    if (error == 0)
        error = ktls_key_read(&layout, &kernel_key);
    if (error == 0) {
        key->sequence = kernel_key.sequence;
        record_key_wipe(&kernel_key);
    }
    OPENSSL_cleanse(&layout, sizeof(layout));
    return error;
}

ssize_t ktls_send_record(const struct ktls_calls *calls, int fd, uint8_t type, struct str plaintext)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(type))];
    } control = {0};
    struct iovec part = {(void *)(uintptr_t)plaintext.data, plaintext.length};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.bytes)};

    if (plaintext.length > LIMIT_RECORD_PLAINTEXT)
        return -EMSGSIZE;
    control.header.cmsg_level = SOL_TLS;
    control.header.cmsg_type = TLS_SET_RECORD_TYPE;
    control.header.cmsg_len = CMSG_LEN(sizeof(type));
    *CMSG_DATA(&control.header) = type;
    ssize_t sent = calls->sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? -errno : sent;
}

#else

enum ktls_reason ktls_enable_error(const struct ktls_calls *calls, int fd, const struct record_key *key,
                                   int *out_error)
{
    *out_error = 0;
    return KTLS_NOT_BUILT;
}

int ktls_rekey(const struct ktls_calls *calls, int fd, const struct record_key *key)
{
    return -EOPNOTSUPP;
}

int ktls_read_sequence(const struct ktls_calls *calls, int fd, struct record_key *key)
{
    return -EOPNOTSUPP;
}

ssize_t ktls_send_record(const struct ktls_calls *calls, int fd, uint8_t type, struct str plaintext)
{
    return -EOPNOTSUPP;
}

#endif

enum ktls_reason ktls_enable(const struct ktls_calls *calls, int fd, const struct record_key *key)
{
    int error;

    return ktls_enable_error(calls, fd, key, &error);
}
