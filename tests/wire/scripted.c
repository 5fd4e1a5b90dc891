#include "scripted.h"

#include <check.h>
#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

struct scripted kernel;

static int refuse(int error)
{
    errno = error;
    return error ? -1 : 0;
}

static void keep_key(const void *value, socklen_t length)
{
    union {
        struct tls_crypto_info head;
        struct tls12_crypto_info_aes_gcm_128 aes_128;
        struct tls12_crypto_info_aes_gcm_256 aes_256;
        struct tls12_crypto_info_chacha20_poly1305 chacha20;
    } key;
    const unsigned char *sequence = key.aes_128.rec_seq;

    ck_assert_uint_le(length, sizeof key);
    memcpy(&key, value, length);
    memcpy(kernel.key, value, length);
    kernel.key_length = length;
    kernel.version = key.head.version;
    kernel.cipher = key.head.cipher_type;
    if (kernel.cipher == TLS_CIPHER_AES_GCM_128) {
        ck_assert_uint_eq(length, sizeof key.aes_128);
        memcpy(kernel.iv, key.aes_128.iv, sizeof kernel.iv);
    } else if (kernel.cipher == TLS_CIPHER_AES_GCM_256) {
        ck_assert_uint_eq(length, sizeof key.aes_256);
        memcpy(kernel.iv, key.aes_256.iv, sizeof kernel.iv);
        sequence = key.aes_256.rec_seq;
    } else {
        ck_assert_uint_eq(kernel.cipher, TLS_CIPHER_CHACHA20_POLY1305);
        ck_assert_uint_eq(length, sizeof key.chacha20);
        sequence = key.chacha20.rec_seq;
    }
    kernel.sequence = 0;
    for (int i = 0; i < 8; i++)
        kernel.sequence = kernel.sequence << 8 | sequence[i];
}

/* Returns false if the socket is full. */
static bool mark(int fd, const char *text)
{
    return !kernel.marks || send(fd, text, SCRIPTED_MARK, MSG_DONTWAIT | MSG_NOSIGNAL) == SCRIPTED_MARK;
}

static int scripted_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    if (level == IPPROTO_TCP) {
        ck_assert_int_eq(name, TCP_ULP);
        kernel.ulp_calls++;
        return refuse(kernel.ulp_error);
    }
    ck_assert_int_eq(name, TLS_TX);
    kernel.tx_calls++;
    keep_key(value, length);
    if (kernel.tx_calls == 1)
        return refuse(kernel.tx_error);
    if (kernel.rekey_error == 0)
        mark(fd, SCRIPTED_MARK_KEY);
    return refuse(kernel.rekey_error);
}

static ssize_t scripted_sendmsg(int fd, const struct msghdr *message, int flags)
{
    const struct cmsghdr *control = CMSG_FIRSTHDR(message);

    if (kernel.control_eagain-- > 0)
        return refuse(EAGAIN);
    if (!mark(fd, SCRIPTED_MARK_CONTROL))
        return refuse(EAGAIN);
    ck_assert_int_eq(flags & MSG_MORE, 0);
    ck_assert_uint_lt(kernel.controls, SCRIPTED_CONTROLS);
    kernel.control_types[kernel.controls++] = *CMSG_DATA(control);
    kernel.control_length = message->msg_iov[0].iov_len;
    memcpy(kernel.control, message->msg_iov[0].iov_base, kernel.control_length);
    return (ssize_t)kernel.control_length;
}

/* The record sequence number is the last member of each struct in linux/tls.h. */
static int scripted_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    unsigned char *sequence = (unsigned char *)value + kernel.key_length;
    uint64_t counted = kernel.counted;

    ck_assert_int_eq(name, TLS_TX);
    ck_assert_uint_eq(*length, kernel.key_length);
    if (counted == UINT64_MAX)
        return refuse(EINVAL);
    memcpy(value, kernel.key, kernel.key_length);
    for (int i = 1; i <= 8; i++, counted >>= 8)
        sequence[-i] = (unsigned char)counted;
    return 0;
}

const struct ktls_calls scripted_calls = {scripted_setsockopt, scripted_sendmsg, scripted_getsockopt};
