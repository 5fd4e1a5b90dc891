/*
 * Keys that the client requests (rule 9), in user space and in the kernel. The kernel is scripted, so that the position
 * of a new key in the stream is visible.
 */
#include "key_fixture.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

static void request_key_update(void)
{
    ck_assert_int_eq(SSL_key_update(kit.client, SSL_KEY_UPDATE_REQUESTED), 1);
    ck_assert_int_eq(SSL_do_handshake(kit.client), 1);
}

/* The answer to a KeyUpdate is sent before the rest of a body, followed by the new key. */
START_TEST(rule_09_kernel_accepts_the_next_key)
{
    int fd = kit_file(BODY);

    open_wire(_i / SUITES_1_3, &transports[1 + _i % SUITES_1_3], true);
    kit.support.rekey = true;
    kit_open(&kit, 4096);
    kit.read_max = 5000;
    begin_body(fd, BODY);
    kernel.control_eagain = 2;
    for (int round = 0; round < 3; round++) {
        request_key_update();
        kit_run_until_received(&kit, kit.got_length + 200000);
    }
    ck_assert_int_eq(kernel.tx_calls, 1 + 3);
    ck_assert_uint_eq(kernel.sequence, 0);
    ck_assert_uint_eq(kit.counters.rekeyings, 3);
    ck_assert_uint_eq(kit.wire.rekeying, 0);
    kit.read_max = 0;
    kit_run_until_received(&kit, BODY + 6 * SCRIPTED_MARK);
    ck_assert_uint_eq(kit.got_length, BODY + 6 * SCRIPTED_MARK);
    for (int round = 0; round < 3; round++) {
        size_t at = find_mark(SCRIPTED_MARK_CONTROL, 0);

        ck_assert_uint_lt(at, BODY - 100000); /* in the middle of the body */
        ck_assert_uint_eq(find_mark(SCRIPTED_MARK_KEY, 0), at + SCRIPTED_MARK);
        ck_assert_uint_eq(kernel.control_types[round], RECORD_HANDSHAKE);
        ck_assert(remove_mark(SCRIPTED_MARK_CONTROL) && remove_mark(SCRIPTED_MARK_KEY));
    }
    ck_assert_mem_eq(kit.got, kit_pattern(), BODY);
    ck_assert_mem_eq(kernel.control, "\x18\0\0\1\0", 5);
    ck_assert_uint_eq(kit.ending, 0);
    leave();
    kit_close(&kit);
    close(fd);
}
END_TEST

/* Bytes that were queued before the answer to a KeyUpdate, in a record that is still open, are sent before it. */
START_TEST(rule_09_open_record_precedes_the_answer)
{
    const struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = STR("open")};
    int fd = kit_file(BODY);

    open_wire(_i, &transports[1], true);
    kit.support.rekey = true;
    kit_open(&kit, 0);
    begin_body(fd, BODY);
    kit_run_until_received(&kit, BODY);
    while (wire_room(&kit.wire) == 0)
        kit_turn(&kit);
    ck_assert_int_eq(wire_send(&kit.wire, &chunk), 0);
    request_key_update();
    for (int turn = 0; turn < 1000 && kit.counters.rekeyings == 0; turn++)
        kit_turn(&kit);
    ck_assert_uint_eq(kit.counters.rekeyings, 1);
    kit_run_until_received(&kit, BODY + chunk.bytes.length + 2 * SCRIPTED_MARK);
    ck_assert_mem_eq(kit.got + BODY, "open", 4);
    ck_assert_uint_eq(find_mark(SCRIPTED_MARK_CONTROL, BODY), BODY + 4);
    leave();
    kit_close(&kit);
    close(fd);
}
END_TEST

/* The peer has received a KeyUpdate, and the kernel refuses the new key: no further byte may be sent. */
START_TEST(rule_09_refused_key_ends_the_connection)
{
    int fd = kit_file(BODY);

    open_wire(_i / 2, &transports[1], true);
    kit.support.rekey = true;
    kernel.rekey_error = _i % 2 ? EBUSY : EINVAL;
    kit_open(&kit, 4096);
    kit.read_max = 5000;
    begin_body(fd, BODY);
    request_key_update();
    while (!kit.got_end && !kit.got_reset)
        kit_turn(&kit);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ABORT);
    ck_assert_int_eq(kernel.tx_calls, 2);
    ck_assert_uint_eq(kernel.controls, 1);
    ck_assert_uint_lt(kit.got_length, BODY);
    size_t at = find_mark(SCRIPTED_MARK_CONTROL, 0);
    /* The mark comes last, unless a reset discarded it. */
    ck_assert(at == kit.got_length || at == kit.got_length - SCRIPTED_MARK);
    ck_assert_mem_eq(kit.got, kit_pattern(), at);
    ck_assert_uint_eq(kit.log_lines, 1);
    ck_assert_ptr_nonnull(strstr(kit.last_log, "refused the next key"));
    kit_close(&kit);
    close(fd);
}
END_TEST

/* If the kernel accepts only one key, the response is completed with it. */
START_TEST(rule_09_old_kernel_completes_the_response)
{
    int fd = kit_file(BODY);

    open_wire(_i, &transports[1], true);
    kit_open(&kit, 4096);
    kit.read_max = 5000;
    begin_body(fd, BODY);
    request_key_update();
    while (!kit.ending)
        kit_turn(&kit);
    kit.read_max = 0;
    kit_run_until_received(&kit, BODY);
    ck_assert_mem_eq(kit.got, kit_pattern(), BODY);
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    while (kernel.controls == 0)
        kit_turn(&kit);
    ck_assert_uint_eq(kernel.control_types[0], RECORD_ALERT);
    ck_assert_mem_eq(kernel.control, "\1\0", 2);
    ck_assert_int_eq(kernel.tx_calls, 1);
    ck_assert_uint_eq(kit.ending, 1);
    leave();
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    kit_close(&kit);
    close(fd);
}
END_TEST

/*
 * A KeyUpdate and an HTTP request arrive together: the request gets its response, although the KeyUpdate had filled the
 * queue.
 */
START_TEST(rule_09_http_request_after_a_key_update)
{
    int fd = kit_file(100000), at_once = 1;

    open_wire(_i, &transports[1], true);
    kit.support.rekey = true;
    kit_open(&kit, 0);
    ck_assert_int_eq(setsockopt(kit.client_fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once), 0);
    begin_body(fd, 100000);
    kernel.marks = false;
    kit_run_until_received(&kit, 100000);
    while (!wire_drained(&kit.wire))
        kit_turn(&kit);
    kit_plan_bytes(&kit, STR("ANSWER"));
    request_key_update();
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, 100000 + 6);
    ck_assert_uint_eq(kit.counters.rekeyings, 1);
    ck_assert_mem_eq(kit.got + 100000, "ANSWER", 6);
    leave();
    kit_close(&kit);
    close(fd);
}
END_TEST

/*
 * A client that requests keys again and again below the rate limit, and reads nothing of its response, makes no
 * progress: the server disconnects it.
 */
START_TEST(rule_09_key_updates_are_no_progress)
{
    bool promoted = _i % 2;
    int fd = kit_file(BODY);
    uint64_t sent;
    unsigned requests = 0;

    open_wire(_i / 2, &transports[1], promoted);
    kit.support.rekey = true;
    if (!promoted)
        kit.settings.record_size = kit.settings.block_size = 128; /* a few answers fill it */
    kit_open(&kit, 4096);
    kernel.control_eagain = INT_MAX;
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit);
    kit_plan_file(&kit, fd, 0, BODY);
    kit_client_send(&kit, "GET\n");
    do {
        sent = wire_bytes_sent(&kit.wire);
        for (int i = 0; i < 250; i++) /* the ACK that makes room may be delayed by 200 ms */
            ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
    } while (wire_bytes_sent(&kit.wire) != sent);
    for (; requests < 3 * LIMIT_KEY_UPDATES && kit.wire.state == WIRE_OPEN; requests++) {
        uint64_t received = wire_bytes_received(&kit.wire);

        loop_skip(&kit.loop, 2 * LIMIT_KEY_UPDATES_MS / LIMIT_KEY_UPDATES);
        request_key_update();
        while (wire_bytes_received(&kit.wire) == received)
            ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
        ck_assert_uint_eq(wire_bytes_sent(&kit.wire), sent);
    }
    leave();
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ABORT);
    kit_close(&kit);
    close(fd);
}
END_TEST

/* Too many KeyUpdates: one log line, an alert, the end. Application data in between does not raise the limit. */
START_TEST(rule_09_excess_key_updates)
{
    bool promoted = _i % 2;
    int fd = kit_file(100000);

    open_wire(_i / 2, &transports[1], promoted);
    kit.support.rekey = true;
    kit_open(&kit, 0);
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit);
    if (promoted) {
        begin_body(fd, 100000);
        kernel.marks = false;
        kit_run_until_received(&kit, 100000);
    }
    ck_assert_uint_eq(kit.log_lines, 0);
    for (int i = 0; i < 2 * LIMIT_KEY_UPDATES; i++) {
        request_key_update();
        ck_assert_int_eq(SSL_write(kit.client, "x", 1), 1);
    }
    while (!kit.closed && !kit.got_end && kit.wire.state != WIRE_LINGERING)
        kit_turn(&kit);
    if (promoted) {
        ck_assert_uint_eq(kernel.controls, LIMIT_KEY_UPDATES + 1);
        ck_assert_uint_eq(kernel.control_types[LIMIT_KEY_UPDATES], RECORD_ALERT);
        ck_assert_mem_eq(kernel.control, "\2\x0a", 2);
    }
    leave();
    ck_assert_int_eq(kit.end, WIRE_CLOSE_PROTOCOL);
    ck_assert_uint_eq(kit.log_lines, 1);
    ck_assert_ptr_nonnull(strstr(kit.last_log, "too many KeyUpdate or renegotiation requests"));
    kit_close(&kit);
    close(fd);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int backends = backend_count();
    bool with_kernel = strcmp(BUILD_KTLS, "built in") == 0;

    tcase_add_loop_test(tcase, rule_09_key_updates_are_no_progress, 0, with_kernel ? 2 * backends : 1);
    tcase_add_loop_test(tcase, rule_09_excess_key_updates, 0, with_kernel ? 2 * backends : 1);
    if (with_kernel) {
        tcase_add_loop_test(tcase, rule_09_kernel_accepts_the_next_key, 0, SUITES_1_3 * backends);
        tcase_add_loop_test(tcase, rule_09_http_request_after_a_key_update, 0, backends);
        tcase_add_loop_test(tcase, rule_09_open_record_precedes_the_answer, 0, backends);
        tcase_add_loop_test(tcase, rule_09_refused_key_ends_the_connection, 0, 2 * backends);
        tcase_add_loop_test(tcase, rule_09_old_kernel_completes_the_response, 0, backends);
    }
}

int main(void)
{
    return run_suite("keys", add_tests);
}
