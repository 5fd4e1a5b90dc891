/* A large response whose key is replaced. */
#ifndef TEST_KEY_FIXTURE_H
#define TEST_KEY_FIXTURE_H

#include "kit.h"
#include "scripted.h"

#include "build_options.h"
#include "skipped_clock.h"

#include "../unit/runner.h"

#include <unistd.h>

static struct kit kit;

enum { SUITES_1_3 = 3, BODY = 2000000 };

static inline void open_wire(int backend, const struct transport *transport, bool kernel_there)
{
    memset(&kernel, 0, sizeof kernel);
    kernel.counted = UINT64_MAX;
    kit_prepare(&kit, backend, transport);
    kit.shared.ktls_calls = &scripted_calls;
    for (int cipher = 0; kernel_there && cipher <= RECORD_CHACHA20_POLY1305; cipher++)
        kit.support.reason[0][cipher] = kit.support.reason[1][cipher] = KTLS_OK;
}

/*
 * Requests the file. Returns when the kernel has begun to send it. From here on the client reads the socket without
 * TLS.
 */
static inline void begin_body(int fd, size_t length)
{
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit); /* for the tickets */
    kernel.marks = true;
    kit_plan_file(&kit, fd, 0, length);
    kit_client_send(&kit, "GET\n");
    kit.raw = true;
    kit_run_until_received(&kit, 1000);
    ck_assert_uint_eq(kit.counters.promotions, 1);
}

/* Returns the position of the mark in the received bytes from `at` on, or their length if there is none. */
static inline size_t find_mark(const char *mark, size_t at)
{
    char *found = memmem(kit.got + at, kit.got_length - at, mark, SCRIPTED_MARK);

    return found ? (size_t)(found - kit.got) : kit.got_length;
}

/* Removes a mark from the received bytes. Returns false if there is none. */
static inline bool remove_mark(const char *mark)
{
    size_t at = find_mark(mark, 0);

    if (at == kit.got_length)
        return false;
    memmove(kit.got + at, kit.got + at + SCRIPTED_MARK, kit.got_length - at - SCRIPTED_MARK);
    kit.got_length -= SCRIPTED_MARK;
    return true;
}

static inline void leave(void)
{
    kernel.marks = false;
    if (kit.wire.state == WIRE_OPEN)
        wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    close(kit.client_fd);
    kit.client_fd = -1;
    kit_until_closed(&kit);
}

#endif
