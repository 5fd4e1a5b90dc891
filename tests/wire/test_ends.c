/*
 * The ends of a wire: in order, truncated, reset by the peer, or closed by the owner at any moment. In each case
 * `closed` is called once, no operation stays in flight, no memory leaks, and the client can detect a truncated
 * response.
 */
#include "kit.h"

#include "base/limits.h"

#include "../unit/runner.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static struct kit kit;

static void open_wire(int index, int buffer)
{
    kit_prepare(&kit, index / transport_count, &transports[index % transport_count]);
    kit_open(&kit, buffer);
}

static void plan_response(int fd, size_t length)
{
    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_file(&kit, fd, 0, length);
}

/*
 * The client reads slowly and has a small window; the owner has already closed. All bytes arrive, followed by
 * close_notify.
 */
START_TEST(rule_15_orderly_close_with_a_slow_reader)
{
    int fd = kit_file(150000);

    open_wire(_i, 4096);
    plan_response(fd, 150000);
    kit.close_after = true;
    kit.read_max = 3000;
    kit_client_send(&kit, "GET\n");
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    ck_assert_uint_eq(kit.got_length, 150004);
    ck_assert_mem_eq(kit.got + 4, kit_pattern(), 150000);
    ck_assert_int_eq(kit.got_close_notify, kit.transport->version != 0);
    kit_close(&kit);
    close(fd);
}
END_TEST

/* The response and the close are requested in the same iteration. */
START_TEST(orderly_close_with_the_response)
{
    open_wire(_i, 0);
    kit_until_open(&kit);
    kit_plan_bytes(&kit, STR("only this"));
    kit.close_after = true;
    kit_pump(&kit);
    kit_until_closed(&kit);
    ck_assert_uint_eq(kit.got_length, 9);
    ck_assert_int_eq(kit.got_close_notify, kit.transport->version != 0);
    ck_assert(!kit.got_reset);
    kit_close(&kit);
}
END_TEST

START_TEST(truncated_file_aborts_the_response)
{
    int fd = kit_file(2000000);

    open_wire(_i, 4096);
    plan_response(fd, 2000000);
    kit.read_max = 20000;
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, 10000);
    ck_assert_int_eq(ftruncate(fd, 150000), 0);
    kit.read_max = 0;
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ABORT);
    ck_assert(!kit.got_close_notify);
    ck_assert_uint_lt(kit.got_length, 2000004);
    ck_assert_uint_ge(kit_counted(&kit), kit.got_length);
    ck_assert_uint_le(kit_counted(&kit), 150004); /* bytes after the truncation were not sent */
    ck_assert_ptr_nonnull(strstr(kit.last_log, "truncated"));
    kit_close(&kit);
    close(fd);
}
END_TEST

/* No read from the descriptor succeeds. */
START_TEST(unreadable_file_aborts_the_response)
{
    int fd = open("/dev/null", O_WRONLY);

    open_wire(_i, 0);
    plan_response(fd, 1000);
    kit_client_send(&kit, "GET\n");
    kit_until_closed(&kit);
    ck_assert_int_ne(kit.end, WIRE_CLOSE_ORDERLY);
    ck_assert(!kit.got_close_notify);
    kit_close(&kit);
    close(fd);
}
END_TEST

static void reset_client(void)
{
    struct linger now = {.l_onoff = 1};

    setsockopt(kit.client_fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(kit.client_fd);
    kit.client_fd = -1;
}

enum { MOMENTS = 6 };

static void until_moment(int moment, int fd)
{
    bool sent = false;

    plan_response(fd, 1000000);
    for (int i = 0; i < 4 * moment * moment && !kit.closed; i++) {
        kit_turn(&kit);
        if (kit.opened && kit.client_connected && !sent) {
            kit_client_send(&kit, "GET\n");
            sent = true;
        }
    }
}

START_TEST(reset_at_every_moment)
{
    int fd = kit_file(1000000);

    open_wire(_i % (transport_count * backend_count()), 4096);
    kit.read_max = 5000;
    until_moment(_i / (transport_count * backend_count()), fd);
    reset_client();
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_PEER_RESET);
    kit_close(&kit);
    close(fd);
}
END_TEST

START_TEST(timeout_at_every_moment)
{
    int fd = kit_file(1000000);

    open_wire(_i % (transport_count * backend_count()), 4096);
    kit.read_max = 5000;
    until_moment(_i / (transport_count * backend_count()), fd);
    wire_close(&kit.wire, WIRE_CLOSE_TIMEOUT);
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    ck_assert_uint_eq(kit.closed, 0);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_TIMEOUT);
    ck_assert(!kit.got_close_notify);
    kit_close(&kit);
    close(fd);
}
END_TEST

/* The owner's timer ends an orderly close if the peer neither reads nor closes. */
START_TEST(orderly_close_times_out)
{
    int fd = kit_file(1000000);

    open_wire(_i, 4096);
    plan_response(fd, 1000000);
    kit.read_max = 1;
    kit_client_send(&kit, "GET\n");
    for (int i = 0; i < 20; i++)
        kit_turn(&kit);
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    for (int i = 0; i < 20; i++)
        kit_turn(&kit);
    ck_assert_uint_eq(kit.closed, 0);
    wire_close(&kit.wire, WIRE_CLOSE_TIMEOUT);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_TIMEOUT);
    kit_close(&kit);
    close(fd);
}
END_TEST

/* While the wire lingers, it reads bytes from the peer up to a limit. */
START_TEST(lingering_is_bounded)
{
    static char junk[65536];
    size_t sent = 0;

    open_wire(_i, 0);
    kit_until_open(&kit);
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    while (!kit.closed && sent < 4 * (size_t)LIMIT_LINGERING_BYTES) {
        ssize_t count = send(kit.client_fd, junk, sizeof junk, MSG_NOSIGNAL | MSG_DONTWAIT);

        sent += count > 0 ? (size_t)count : 0;
        ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
    }
    ck_assert_uint_gt(sent, LIMIT_LINGERING_BYTES);
    ck_assert_uint_eq(kit.closed, 1);
    while (kit.loop.in_flight)
        kit_turn(&kit);
    kit_close(&kit);
}
END_TEST

/* The wire reports the end of the peer's stream once, whether close_notify or only FIN ends it. */
START_TEST(end_of_the_peer_is_reported_once)
{
    open_wire(_i, 0);
    kit_until_open(&kit);
    if (kit.client && _i % 2)
        SSL_shutdown(kit.client);
    shutdown(kit.client_fd, SHUT_WR);
    for (int i = 0; i < 100 && !kit.peer_ended; i++)
        kit_turn(&kit);
    ck_assert(kit.peer_ended);
    ck_assert_int_eq(wire_truncated(&kit.wire), kit.client && _i % 2 == 0);
    ck_assert_uint_eq(kit.closed, 0);
    wire_receive(&kit.wire); /* has no effect after the end */
    kit_plan_bytes(&kit, STR("last words"));
    kit.close_after = true;
    kit_pump(&kit);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    ck_assert_uint_eq(kit.got_length, 10);
    kit_close(&kit);
}
END_TEST

static void send_raw_bytes(const char *bytes, size_t length, bool half_closed)
{
    kit_prepare(&kit, 0, &transports[1]);
    kit_open(&kit, 0);
    SSL_free(kit.client);
    SSL_CTX_free(kit.client_openssl);
    kit.client = NULL;
    kit.client_openssl = NULL;
    kit.client_connected = true;
    ck_assert_int_eq(send(kit.client_fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
    if (half_closed)
        shutdown(kit.client_fd, SHUT_WR);
}

START_TEST(plain_http_is_noticed)
{
    send_raw_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, false);
    for (int i = 0; i < 100 && !kit.opened; i++)
        kit_turn(&kit);
    ck_assert(wire_got_plain_http(&kit.wire));
    ck_assert_ptr_null(kit.wire.tls);
    kit_plan_bytes(&kit, STR("HTTP/1.1 400"));
    kit.close_after = true;
    kit_pump(&kit);
    kit_until_closed(&kit);
    ck_assert_uint_eq(kit.got_length, 12);
    ck_assert_mem_eq(kit.got, "HTTP/1.1 400", 12);
    ck_assert_uint_eq(kit.counters.handshakes_failed, 1);
    kit_close(&kit);
}
END_TEST

static const struct {
    const char *bytes;
    size_t length;
} garbage[] = {
    {"\0\0\0\0\0\0\0\0\0\0\0\0", 12},
    {"\x16\x03\x01\xff\xff garbage of a length that is too long", 40},
    {"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10},
    {"\x15\x03\x03\x00\x02\x02\x28", 7},
    {"SSH-2.0-OpenSSH_9.2\r\n", 21},
};

START_TEST(invalid_handshake_closes_the_connection)
{
    send_raw_bytes(garbage[_i].bytes, garbage[_i].length, false);
    kit_until_closed(&kit);
    ck_assert_uint_eq(kit.opened, 0);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_PROTOCOL);
    ck_assert_uint_eq(kit.counters.handshakes_failed, 1);
    kit_close(&kit);
}
END_TEST

START_TEST(peer_closes_before_the_handshake)
{
    send_raw_bytes("\x16\x03", 2, true);
    kit_until_closed(&kit);
    ck_assert_uint_eq(kit.opened, 0);
    kit_close(&kit);
}
END_TEST

/* A record that does not decrypt: the connection ends with an alert, not with close_notify. */
START_TEST(invalid_record_after_the_handshake)
{
    kit_prepare(&kit, 0, &transports[1 + _i]);
    kit_open(&kit, 0);
    kit_until_open(&kit);
    ck_assert_int_eq(send(kit.client_fd, "\x17\x03\x03\x00\x20 0123456789012345678901234567890", 37, MSG_NOSIGNAL),
                     37);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_PROTOCOL);
    ck_assert(!kit.got_close_notify);
    kit_close(&kit);
}
END_TEST

/* A file that is not in the page cache, if the file system can drop its pages. */
START_TEST(rule_17_response_not_in_page_cache)
{
    char name[] = "cold-XXXXXX";
    int fd = mkstemp(name);

    ck_assert_int_ge(fd, 0);
    unlink(name);
    ck_assert_int_eq(write(fd, kit_pattern(), KIT_PATTERN), KIT_PATTERN);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    open_wire(_i, 0);
    plan_response(fd, KIT_PATTERN);
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, KIT_PATTERN + 4);
    ck_assert_uint_eq(kit.got_length, KIT_PATTERN + 4);
    ck_assert_mem_eq(kit.got + 4, kit_pattern(), KIT_PATTERN);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    plan_response(fd, KIT_PATTERN); /* the close below may occur during a read */
    kit_client_send(&kit, "GET\n");
    for (int i = 0; i < 3; i++)
        kit_turn(&kit);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
    close(fd);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int count = transport_count * backend_count();

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, rule_15_orderly_close_with_a_slow_reader, 0, count);
    tcase_add_loop_test(tcase, orderly_close_with_the_response, 0, count);
    tcase_add_loop_test(tcase, truncated_file_aborts_the_response, 0, count);
    tcase_add_loop_test(tcase, unreadable_file_aborts_the_response, 0, count);
    tcase_add_loop_test(tcase, reset_at_every_moment, 0, count * MOMENTS);
    tcase_add_loop_test(tcase, timeout_at_every_moment, 0, count * MOMENTS);
    tcase_add_loop_test(tcase, orderly_close_times_out, 0, count);
    tcase_add_loop_test(tcase, lingering_is_bounded, 0, count);
    tcase_add_loop_test(tcase, end_of_the_peer_is_reported_once, 0, count);
    tcase_add_test(tcase, plain_http_is_noticed);
    tcase_add_loop_test(tcase, invalid_handshake_closes_the_connection, 0, sizeof garbage / sizeof garbage[0]);
    tcase_add_test(tcase, peer_closes_before_the_handshake);
    tcase_add_loop_test(tcase, invalid_record_after_the_handshake, 0, transport_count - 1);
    tcase_add_loop_test(tcase, rule_17_response_not_in_page_cache, 0, count);
}

int main(void)
{
    return run_suite("ends", add_tests);
}
