/* A connection that may be handed to a scripted kernel. */
#ifndef TEST_PROMOTION_FIXTURE_H
#define TEST_PROMOTION_FIXTURE_H

#include "kit.h"
#include "scripted.h"

#include "build_options.h"

#include "../unit/runner.h"

#include <linux/tls.h>
#include <unistd.h>

static struct kit kit;

static inline void open_wire(int backend, const struct transport *transport, bool offered)
{
    memset(&kernel, 0, sizeof kernel);
    kit_prepare(&kit, backend, transport);
    kit.shared.ktls_calls = &scripted_calls;
    if (offered) {
        for (int cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
            kit.support.reason[0][cipher] = kit.support.reason[1][cipher] = KTLS_OK;
    }
}

/*
 * The scripted kernel sends no close_notify, and the wire sends FIN only after close_notify. The client receives
 * neither, so it closes without them.
 */
static inline void finish_promoted(void)
{
    if (kit.wire.state == WIRE_OPEN)
        wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    while (kernel.controls == 0)
        kit_turn(&kit);
    for (int i = 0; i < 10; i++)
        kit_turn(&kit);
    ck_assert(wire_lingering(&kit.wire));
    ck_assert(!kit.got_end);
    close(kit.client_fd);
    kit.client_fd = -1;
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    ck_assert_uint_eq(kernel.controls, 1);
    ck_assert_uint_eq(kernel.control_types[0], RECORD_ALERT);
    ck_assert_mem_eq(kernel.control, "\1\0", 2); /* warning, close_notify */
    kit_close(&kit);
}

static inline void expect_reason(const char *path, const char *reason)
{
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_str_eq(wire_path_name(kit.transfer.path), path);
    ck_assert_str_eq(wire_reason_name(kit.transfer.reason), reason);
}

/* The client sends its request by TLS; after that it reads without decryption. */
static inline void promote(int fd, size_t length)
{
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit); /* for the tickets, which still need TLS */
    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_file(&kit, fd, 0, length);
    kit_client_send(&kit, "GET\n");
    kit_stop_client_tls(&kit);
    kit_run_until_received(&kit, 4 + length);
    ck_assert_uint_eq(kit.got_length, 4 + length);
    ck_assert_mem_eq(kit.got, "HEAD", 4);
    ck_assert_mem_eq(kit.got + 4, kit_pattern(), length);
}

#endif
