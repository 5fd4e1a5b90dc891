/* Connections after the hand-off to a scripted kernel: further responses, key updates, and the close. */
#include "promotion_fixture.h"

#include <unistd.h>

/*
 * After promotion: small responses go by send; OpenSSL's records keep their order and are delayed while the socket is
 * full.
 */
START_TEST(promoted_connection_continues)
{
    int fd = kit_file(100000);
    size_t length;

    open_wire(_i, &transports[1], true);
    kit_open(&kit, 0);
    promote(fd, 100000);
    (void)wire_transfer_end(&kit.wire, NULL);
    length = kit.got_length;
    kit_plan_bytes(&kit, STR("small answer"));
    kit_pump(&kit);
    kit_run_until_received(&kit, length + 12);
    ck_assert_mem_eq(kit.got + length, "small answer", 12);
    expect_reason("ktls-send", "ok");
    length = kit.got_length;
    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_file(&kit, fd, 5, 90000);
    kit.close_after = true;
    kernel.control_eagain = 3;
    kit_pump(&kit);
    kit_run_until_received(&kit, length + 90004);
    ck_assert_mem_eq(kit.got + length + 4, kit_pattern() + 5, 90000);
    finish_promoted();
    ck_assert_int_eq(kernel.tx_calls, 1);
    close(fd);
}
END_TEST

/* The file ends early while the kernel sends it: no close_notify, so that the response does not look complete. */
START_TEST(rule_13_truncated_after_promotion)
{
    int fd = kit_file(2000000);

    open_wire(_i, &transports[1], true);
    kit_open(&kit, 4096);
    kit_plan_file(&kit, fd, 0, 2000000);
    kit_client_send(&kit, "GET\n");
    kit_stop_client_tls(&kit);
    kit_run_until_received(&kit, 10000);
    ck_assert_int_eq(ftruncate(fd, 100000), 0);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ABORT);
    ck_assert_uint_eq(kernel.controls, 0);
    ck_assert_uint_lt(kit.got_length, 2000000);
    kit_close(&kit);
    close(fd);
}
END_TEST

/*
 * This kernel cannot replace a key, so a request for a new one is not answered. The connection closes in order after
 * the response.
 */
START_TEST(key_update_after_promotion)
{
    int fd = kit_file(100000);

    open_wire(_i, &transports[1], true);
    kit_open(&kit, 0);
    kit_plan_file(&kit, fd, 0, 100000);
    kit_client_send(&kit, "GET\n");
    while (kit.counters.promotions == 0)
        ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
    ck_assert_int_eq(SSL_key_update(kit.client, SSL_KEY_UPDATE_REQUESTED), 1);
    ck_assert_int_eq(SSL_do_handshake(kit.client), 1);
    kit_stop_client_tls(&kit);
    kit_run_until_received(&kit, 100000);
    while (!kit.ending)
        kit_turn(&kit);
    ck_assert_uint_eq(kit.ending, 1);
    ck_assert_uint_eq(kernel.controls, 0);
    finish_promoted();
    close(fd);
}
END_TEST

/*
 * With each backend, and with and without a half-close by the client: the wire does not close the socket of a promoted
 * connection while TCP has unacknowledged bytes, and each acknowledgement counts as progress.
 */
START_TEST(rule_15_close_waits_for_acknowledgements)
{
    enum { LENGTH = 300000, ROOM = 1 << 20 };
    int fd = kit_file(LENGTH), room = ROOM;
    uint64_t until, progress;

    open_wire(_i / 2, &transports[1], true);
    kit_open(&kit, 4096);
    ck_assert_int_eq(setsockopt(kit.wire.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit);
    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_file(&kit, fd, 0, LENGTH);
    kit.close_after = true;
    kit_client_send(&kit, "GET\n");
    kit_stop_client_tls(&kit);
    if (_i % 2)
        ck_assert_int_eq(shutdown(kit.client_fd, SHUT_WR), 0);
    while (!wire_lingering(&kit.wire))
        ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
    until = kit.loop.clock.monotonic_ms + 5 * LIMIT_UNACKNOWLEDGED_CHECK_MS;
    while (kit.loop.clock.monotonic_ms < until)
        ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
    ck_assert_uint_eq(kit.closed, 0);
    ck_assert(wire_unacknowledged(&kit.wire));
    progress = wire_bytes_sent(&kit.wire);
    kit_run_until_received(&kit, LENGTH / 2);
    ck_assert_uint_gt(wire_bytes_sent(&kit.wire), progress);
    kit_run_until_received(&kit, 4 + LENGTH);
    ck_assert_uint_eq(kit.got_length, 4 + LENGTH);
    ck_assert_mem_eq(kit.got + 4, kit_pattern(), LENGTH);
    while (wire_unacknowledged(&kit.wire) && !kit.closed)
        kit_turn(&kit);
    if (_i % 2 == 0) {
        ck_assert_uint_eq(kit.closed, 0); /* closed by the owner's timer or by the client */
        close(kit.client_fd);
        kit.client_fd = -1;
    }
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    kit_close(&kit);
    close(fd);
}
END_TEST

/*
 * The peer resets the connection after the end of its stream. The wire does not wait for unacknowledged bytes then,
 * even without a timer.
 */
START_TEST(rule_15_reset_ends_the_wait)
{
    enum { LENGTH = 300000, ROOM = 1 << 20 };
    int fd = kit_file(LENGTH), room = ROOM;

    open_wire(_i, &transports[1], true);
    kit_open(&kit, 4096);
    ck_assert_int_eq(setsockopt(kit.wire.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    kit_plan_file(&kit, fd, 0, LENGTH);
    kit.close_after = true;
    kit_client_send(&kit, "GET\n");
    ck_assert_int_eq(shutdown(kit.client_fd, SHUT_WR), 0);
    while (!wire_lingering(&kit.wire) || kit.wire.receive.verb != OP_TIMER)
        ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
    close(kit.client_fd); /* close(2) with unread bytes sends a reset */
    kit.client_fd = -1;
    kit_until_closed(&kit);
    kit_close(&kit);
    close(fd);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int backends = backend_count();

    tcase_add_loop_test(tcase, promoted_connection_continues, 0, backends);
    tcase_add_loop_test(tcase, rule_13_truncated_after_promotion, 0, backends);
    tcase_add_loop_test(tcase, key_update_after_promotion, 0, backends);
    tcase_add_loop_test(tcase, rule_15_reset_ends_the_wait, 0, backends);
    tcase_add_loop_test(tcase, rule_15_close_waits_for_acknowledgements, 0, 2 * backends);
}

int main(void)
{
    if (strcmp(BUILD_KTLS, "built in") != 0)
        return skip_program("built without kernel TLS");
    return run_suite("promoted", add_tests);
}
