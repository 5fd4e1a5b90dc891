/*
 * Responses on a plain, a TLS and a promoted connection, and the number of their system calls. For programs linked with
 * --wrap of send, sendmsg, preadv64v2 and sendfile64.
 */
#ifndef TEST_SPANS_FIXTURE_H
#define TEST_SPANS_FIXTURE_H

#include "kit.h"
#include "scripted.h"

#include "build_options.h"

#include "../unit/runner.h"

#include <string.h>
#include <unistd.h>

static struct kit kit;
static unsigned sends, reads, sendfiles; /* system calls of the server */

ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);
ssize_t __real_sendfile64(int to, int from, off64_t *at, size_t length);
ssize_t __wrap_sendfile64(int to, int from, off64_t *at, size_t length);

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags)
{
    sends++;
    return __real_send(fd, bytes, length, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    sends++;
    return __real_sendmsg(fd, message, flags);
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags)
{
    ssize_t result = __real_preadv64v2(fd, parts, count, at, flags);

    reads += result >= 0; /* without RWF_NOWAIT in the file system the call fails */
    return result;
}

ssize_t __wrap_sendfile64(int to, int from, off64_t *at, size_t length)
{
    sendfiles++;
    return __real_sendfile64(to, from, at, length);
}

enum kind { PLAIN, USER, KERNEL };
#ifdef HAVE_KTLS
enum { KINDS = KERNEL + 1 };
#else
enum { KINDS = KERNEL };
#endif

static inline void open_wire(int backend, enum kind kind)
{
    memset(&kernel, 0, sizeof kernel);
    kit_prepare(&kit, backend, &transports[kind == PLAIN ? 0 : 1]);
    kit.shared.ktls_calls = &scripted_calls;
    if (kind == KERNEL) {
        for (int cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
            kit.support.reason[0][cipher] = kit.support.reason[1][cipher] = KTLS_OK;
    }
    kit_open(&kit, 0);
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit); /* for the tickets */
    ck_assert_int_eq(setsockopt(kit.wire.fd, SOL_SOCKET, SO_SNDBUF, &(int){2 << 20}, sizeof(int)), 0);
    ck_assert_int_eq(setsockopt(kit.client_fd, SOL_SOCKET, SO_RCVBUF, &(int){2 << 20}, sizeof(int)), 0);
}

/* A large file first: the kernel encrypts from then on. */
static inline void promote(int fd)
{
    kit_plan_file(&kit, fd, 0, 1000000);
    kit_client_send(&kit, "GET\n");
    kit_stop_client_tls(&kit);
    kit_run_until_received(&kit, 1000000);
    ck_assert_uint_eq(kit.counters.promotions, 1);
    (void)wire_transfer_end(&kit.wire, NULL);
    kit.planned = kit.given = 0;
    kit.got_length = 0;
}

static inline void close_wire(enum kind kind)
{
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    if (kind == KERNEL) {
        while (kernel.controls == 0)
            kit_turn(&kit);
        close(kit.client_fd);
        kit.client_fd = -1;
    }
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    kit_close(&kit);
}

#endif
