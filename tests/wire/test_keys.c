/*
 * Limits of a key and its replacement (rules 9 and 10): requested by the peer or started by the server, in user space
 * and in the kernel. The kernel is scripted, so that the position of a new key in the stream is visible.
 */
#include "kit.h"
#include "scripted.h"

#include "base/limits.h"
#include "build_options.h"
#include "skipped_clock.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <unistd.h>

static struct kit kit;

enum { SUITES_1_3 = 3, BODY = 2000000 };

static void open_wire(int backend, const struct transport *transport, bool kernel_there)
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
static void begin_body(int fd, size_t length)
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

static void request_key_update(void)
{
    ck_assert_int_eq(SSL_key_update(kit.client, SSL_KEY_UPDATE_REQUESTED), 1);
    ck_assert_int_eq(SSL_do_handshake(kit.client), 1);
}

/* Returns the position of the mark in the received bytes from `at` on, or their length if there is none. */
static size_t find_mark(const char *mark, size_t at)
{
    char *found = memmem(kit.got + at, kit.got_length - at, mark, SCRIPTED_MARK);

    return found ? (size_t)(found - kit.got) : kit.got_length;
}

/* Removes a mark from the received bytes. Returns false if there is none. */
static bool remove_mark(const char *mark)
{
    size_t at = find_mark(mark, 0);

    if (at == kit.got_length)
        return false;
    memmove(kit.got + at, kit.got + at + SCRIPTED_MARK, kit.got_length - at - SCRIPTED_MARK);
    kit.got_length -= SCRIPTED_MARK;
    return true;
}

static void leave(void)
{
    kernel.marks = false;
    if (kit.wire.state == WIRE_OPEN)
        wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    close(kit.client_fd);
    kit.client_fd = -1;
    kit_until_closed(&kit);
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

/* In user space the server replaces its key during a response of any length. */
START_TEST(rule_10_new_key_in_user_space)
{
    int fd = kit_file(BODY);
    int row = _i % 7;
    bool renewable = row < SUITES_1_3;

    open_wire(_i / 7, &transports[1 + row], false);
    kit.shared.records_per_key = 64;
    kit_open(&kit, 0);
    for (int i = 1; i <= 3; i++) {
        kit_plan_file(&kit, fd, 0, 500000); /* 31 records */
        kit_client_send(&kit, "GET\n");
        kit_run_until_received(&kit, (size_t)i * 500000);
        ck_assert_mem_eq(kit.got + (size_t)(i - 1) * 500000, kit_pattern(), 500000);
        ck_assert_uint_lt(kit.wire.key.sequence, renewable ? 64 : 200);
    }
    ck_assert_uint_eq(kit.ending, renewable ? 0 : 1); /* TLS 1.2: the owner closes */
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    kit_until_closed(&kit);
    ck_assert(kit.got_close_notify);
    kit_close(&kit);
    close(fd);
}
END_TEST

/*
 * In the kernel the server replaces its key before the limit of records, even if the kernel does not report its count.
 */
START_TEST(rule_10_new_key_in_the_kernel)
{
    enum { RECORDS = 64 };
    int fd = kit_file(BODY);
    size_t last = 0, keys = 0, at;

    open_wire(_i, &transports[1], true);
    kit.support.rekey = true;
    kit.shared.records_per_key = RECORDS;
    kit_open(&kit, 0);
    begin_body(fd, BODY);
    while (kit.got_length < BODY + 2 * SCRIPTED_MARK * kit.counters.rekeyings)
        kit_turn(&kit);
    while ((at = find_mark(SCRIPTED_MARK_CONTROL, last)) < kit.got_length) {
        ck_assert_uint_le(at - last, RECORDS * 4096);
        ck_assert_uint_eq(find_mark(SCRIPTED_MARK_KEY, at), at + SCRIPTED_MARK);
        last = at + (size_t)2 * SCRIPTED_MARK;
        keys++;
    }
    ck_assert_uint_ge(keys, BODY / (RECORDS * 4096));
    ck_assert_uint_eq(kit.counters.rekeyings, keys);
    while (remove_mark(SCRIPTED_MARK_CONTROL) && remove_mark(SCRIPTED_MARK_KEY))
        continue;
    ck_assert_uint_eq(kit.got_length, BODY);
    ck_assert_mem_eq(kit.got, kit_pattern(), BODY);
    ck_assert_uint_eq(kit.ending, 0);
    leave();
    kit_close(&kit);
    close(fd);
}
END_TEST

/* If the kernel reports its record sequence number, the limit applies to that number. */
START_TEST(rule_10_count_of_the_kernel_decides)
{
    int fd = kit_file(BODY);

    open_wire(_i, &transports[1], true);
    kit.support.rekey = true;
    kit.shared.records_per_key = 1000;
    kernel.counted = 3;
    kit_open(&kit, 0);
    begin_body(fd, BODY);
    kit_run_until_received(&kit, BODY);
    ck_assert_mem_eq(kit.got, kit_pattern(), BODY);
    ck_assert_uint_eq(kit.counters.rekeyings, 0);
    kernel.counted = 940; /* more than the limit for a renewal */
    kit.wire.key.sequence = 990;
    kit_plan_file(&kit, fd, 0, 100000);
    kit_pump(&kit);
    kit_run_until_received(&kit, BODY + 100000 + 2 * SCRIPTED_MARK);
    ck_assert_uint_eq(kit.counters.rekeyings, 1);
    leave();
    kit_close(&kit);
    close(fd);
}
END_TEST

/* The key cannot be replaced: the wire calls the owner before the limit, and aborts a response that exceeds it. */
START_TEST(rule_10_expired_key_aborts_the_response)
{
    enum { RECORDS = 160 };
    int fd = kit_file(BODY);

    open_wire(_i / 2, &transports[_i % 2 ? 4 : 1], true); /* TLS 1.2, or a kernel that refuses */
    kit.support.rekey = _i % 2;
    kit.shared.records_per_key = RECORDS;
    kit_open(&kit, 0);
    begin_body(fd, BODY);
    while (!kit.closed)
        kit_turn(&kit);
    ck_assert_uint_eq(kit.ending, 1);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ABORT);
    ck_assert_uint_eq(kernel.controls, 0);
    ck_assert_uint_le(kit.got_length, RECORDS * 4096);
    ck_assert_uint_ge(kit.got_length, RECORDS * 4096 / 2);
    ck_assert_uint_eq(kit.log_lines, 1);
    kit_until_closed(&kit);
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

int main(void)
{
    Suite *suite = suite_create("keys");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int backends = backend_count(), failed;
    bool with_kernel = strcmp(BUILD_KTLS, "built in") == 0;

    tcase_set_timeout(all, 20);
    tcase_add_loop_test(all, rule_10_new_key_in_user_space, 0, 7 * backends);
    tcase_add_loop_test(all, rule_09_key_updates_are_no_progress, 0, with_kernel ? 2 * backends : 1);
    tcase_add_loop_test(all, rule_09_excess_key_updates, 0, with_kernel ? 2 * backends : 1);
    if (with_kernel) {
        tcase_add_loop_test(all, rule_09_kernel_accepts_the_next_key, 0, SUITES_1_3 * backends);
        tcase_add_loop_test(all, rule_09_http_request_after_a_key_update, 0, backends);
        tcase_add_loop_test(all, rule_09_open_record_precedes_the_answer, 0, backends);
        tcase_add_loop_test(all, rule_09_refused_key_ends_the_connection, 0, 2 * backends);
        tcase_add_loop_test(all, rule_09_old_kernel_completes_the_response, 0, backends);
        tcase_add_loop_test(all, rule_10_new_key_in_the_kernel, 0, backends);
        tcase_add_loop_test(all, rule_10_count_of_the_kernel_decides, 0, backends);
        tcase_add_loop_test(all, rule_10_expired_key_aborts_the_response, 0, 2 * backends);
    }
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
