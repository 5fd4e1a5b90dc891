/*
 * Frames of two responses to a client that does not read: after a chunk with `ends_turn` the wire accepts no more than
 * the socket takes at once, or one frame.
 */
#include "kit.h"
#include "scripted.h"

#include "base/limits.h"
#include "build_options.h"
#include "wire/wire_queue.h"

#include "../unit/runner.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 9, PAYLOAD = 16375, SHORT = 500, FRAME = HEAD + PAYLOAD, FRAMES = KIT_CHUNKS / 2 };
enum { RECORD_EXTRA = 22, BODY = FRAMES / 2 * PAYLOAD };
enum { UNSENT = 64 * 1024, BUFFER = 64 * 1024, LARGE_BUFFER = 2 << 20, READ_MAX = 10000, QUIET_TURNS = 50 };

static struct kit kit;
static struct transfer transfers[2];
static size_t passed; /* bytes that the server's socket has accepted */

ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

ssize_t __real_sendfile64(int to, int from, off64_t *at, size_t length);
ssize_t __wrap_sendfile64(int to, int from, off64_t *at, size_t length);

static ssize_t count_passed(int fd, ssize_t sent)
{
    if (fd == kit.wire.fd && sent > 0)
        passed += (size_t)sent;
    return sent;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags)
{
    return count_passed(fd, __real_send(fd, bytes, length, flags));
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return count_passed(fd, __real_sendmsg(fd, message, flags));
}

ssize_t __wrap_sendfile64(int to, int from, off64_t *at, size_t length)
{
    return count_passed(to, __real_sendfile64(to, from, at, length));
}

enum kind { PLAIN, USER, KERNEL };
#ifdef HAVE_KTLS
enum { KINDS = KERNEL + 1 };
#else
enum { KINDS = KERNEL };
#endif

static const struct row {
    const char *name;
    int64_t run;                    /* bytes of a file; 0: bytes in memory */
    bool shared;
    int send_buffer;                /* bounds what the socket takes, unless it is LARGE_BUFFER */
} rows[] = {
    {"files", BODY, true, LARGE_BUFFER},
    {"files, small send buffer", BODY, true, BUFFER},
    {"files of one frame", PAYLOAD, true, LARGE_BUFFER}, /* copied */
    {"files of one frame, small send buffer", PAYLOAD, true, BUFFER},
    {"bytes", 0, true, LARGE_BUFFER},
    {"bytes, small send buffer", 0, true, BUFFER},
    {"one response", 0, false, LARGE_BUFFER},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void open_wire(int backend, enum kind kind, const struct row *row, int fd)
{
    memset(&kernel, 0, sizeof kernel);
    memset(transfers, 0, sizeof transfers);
    kit_prepare(&kit, backend, &transports[kind == PLAIN ? 0 : 1]);
    kit.shared.ktls_calls = &scripted_calls;
    for (int cipher = 0; kind == KERNEL && cipher <= RECORD_CHACHA20_POLY1305; cipher++)
        kit.support.reason[0][cipher] = kit.support.reason[1][cipher] = KTLS_OK;
    kit_open(&kit, BUFFER);
    kit_until_open(&kit);
    ck_assert_int_eq(setsockopt(kit.wire.fd, SOL_SOCKET, SO_SNDBUF, &row->send_buffer, sizeof(int)), 0);
    if (kind != KERNEL)
        return;
    kit_plan_file(&kit, fd, 0, 1000000);
    kit_client_send(&kit, "GET\n");
    kit_stop_client_tls(&kit);
    kit_run_until_received(&kit, 1000000);
    ck_assert_uint_eq(kit.counters.promotions, 1);
    (void)wire_transfer_end(&kit.wire, NULL);
    kit.planned = kit.given = 0;
    kit.got_length = 0;
}

/* Of a frame: the last one of a response is short. */
static size_t payload_of(int frame)
{
    return frame % 5 == 4 ? SHORT : PAYLOAD;
}

static void plan_frames(const struct row *row, int fd)
{
    for (int i = 0; i < FRAMES; i++) {
        int64_t at = (int64_t)(i / 2) * PAYLOAD;
        struct chunk *chunk;

        kit_plan_bytes(&kit, str_of(kit_pattern() + i, HEAD));
        if (row->run)
            kit_plan_file(&kit, fd, at, payload_of(i));
        else
            kit_plan_bytes(&kit, str_of(kit_pattern() + at, payload_of(i)));
        chunk = &kit.plan[kit.planned - 1];
        chunk->transfer = &transfers[i % 2];
        chunk->ends_turn = row->shared;
        if (row->run)
            chunk->file.run = (uint32_t)(row->run - at % row->run);
    }
}

/* The bytes that the wire has accepted, as the socket counts them. */
static size_t given_bytes(enum kind kind)
{
    size_t bytes = 0, frames = (size_t)kit.given / 2;

    for (int i = 0; i < kit.given; i++)
        bytes += i % 2 ? payload_of(i / 2) : HEAD;
    return bytes + (kind == USER ? frames * RECORD_EXTRA : 0);
}

/* The next measurement finds nothing acknowledged, however long the machine takes for an iteration. */
static void keep_limit(void)
{
    kit.wire.confirmed = (uint32_t)kit.wire.sent + INT32_MAX / 2;
}

/* Returns the largest number of bytes that waited in the wire. */
static size_t run_without_reading(enum kind kind)
{
    size_t longest = 0, before;
    int quiet = 0;

    passed = 0;
    keep_limit();
    kit_pump(&kit);
    while (quiet < QUIET_TURNS) {
        size_t waiting = given_bytes(kind) > passed ? given_bytes(kind) - passed : 0;

        longest = waiting > longest ? waiting : longest;
        before = passed;
        keep_limit();
        ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
        quiet = passed == before ? quiet + 1 : 0;
    }
    return longest;
}

/* Reads slowly: sends have to wait. */
static void expect_frames(void)
{
    size_t length = 0, at = 0;

    for (int i = 0; i < FRAMES; i++)
        length += HEAD + payload_of(i);
    kit.read_max = READ_MAX;
    kit_run_until_received(&kit, length);
    ck_assert_uint_eq(kit.got_length, length);
    for (int i = 0; i < FRAMES; i++) {
        ck_assert_mem_eq(kit.got + at, kit_pattern() + i, HEAD);
        ck_assert_mem_eq(kit.got + at + HEAD, kit_pattern() + i / 2 * PAYLOAD, payload_of(i));
        at += HEAD + payload_of(i);
    }
}

/* With each backend and kind. */
START_TEST(one_frame_waits_for_the_socket)
{
    const struct row *row = &rows[_i % ROWS];
    enum kind kind = (enum kind)(_i / ROWS % KINDS);
    int fd = kit_file(KIT_PATTERN);
    size_t most = FRAME + HEAD + SHORT + 2 * RECORD_EXTRA, waited;

    open_wire(_i / ROWS / KINDS, kind, row, fd);
    wire_limit_unsent(&kit.wire, UNSENT);
    plan_frames(row, fd);
    waited = run_without_reading(kind);
    ck_assert_int_lt(kit.given, kit.planned);
    ck_assert_msg((waited <= most) == row->shared, "%s, kind %d: %zu bytes", row->name, kind, waited);
    expect_frames();
    for (int i = 0; i < 2; i++)
        (void)wire_transfer_end(&kit.wire, &transfers[i]);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
    close(fd);
}
END_TEST

/* Fills the socket behind the wire, until it takes no more for a while. Returns the number of bytes. */
static size_t fill_socket(void)
{
    size_t filled = 0;

    for (int quiet = 0; quiet < QUIET_TURNS; quiet++) {
        ssize_t sent = __real_send(kit.wire.fd, kit_pattern(), SHORT, MSG_DONTWAIT);

        ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
        filled += sent > 0 ? (size_t)sent : 0;
        quiet = sent > 0 ? 0 : quiet;
    }
    return filled;
}

/* With each backend: a span that is read only when a short frame before it was sent, into a record that is not full. */
START_TEST(turn_ends_after_the_read_of_its_span)
{
    enum { SPANS = 4 };
    const struct row *row = &rows[0];
    int fd = kit_file(KIT_PATTERN);
    size_t filled;

    open_wire(_i, PLAIN, row, fd);
    wire_limit_unsent(&kit.wire, FRAME);
    filled = fill_socket();
    kit_plan_bytes(&kit, str_of(kit_pattern(), SHORT));
    kit_pump(&kit);
    ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 1), 0);
    ck_assert(!wire_drained(&kit.wire));
    for (int i = 0; i < SPANS; i++) {
        kit_plan_file(&kit, fd, i, PAYLOAD);
        kit.plan[kit.planned - 1].file.run = PAYLOAD;
        kit.plan[kit.planned - 1].ends_turn = true;
    }
    kit_pump(&kit);
    ck_assert_int_lt(kit.given, kit.planned);
    kit.read_max = READ_MAX;
    kit_run_until_received(&kit, filled + SHORT + SPANS * PAYLOAD);
    for (int i = 0; i < SPANS; i++)
        ck_assert_mem_eq(kit.got + filled + SHORT + (size_t)i * PAYLOAD, kit_pattern() + i, PAYLOAD);
    (void)wire_transfer_end(&kit.wire, NULL);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
    close(fd);
}
END_TEST

static const struct rate {
    const char *name;
    uint64_t confirmed;             /* bytes that the client acknowledged */
    uint32_t elapsed_ms;
    uint8_t before, after;          /* unsent_doublings */
} rates[] = {
    {"too early to measure", 100 * UNSENT, UNSENT_PERIOD_MS - 1, 0, 0},
    {"too early for a raised limit", 100 * UNSENT, 4 * UNSENT_PERIOD_MS - 1, 2, 2},
    {"nothing was acknowledged", 0, UNSENT_PERIOD_MS, 0, 0},
    {"slow", 2 * UNSENT - 1, UNSENT_MS, 0, 0},
    {"twice the limit", 2 * UNSENT, UNSENT_MS, 0, 1},
    {"four times, rounded down", 7 * UNSENT, UNSENT_MS, 0, 2},
    {"the same rate in a longer time", 70 * UNSENT, 10 * UNSENT_MS, 0, 2},
    {"capped", 1000 * UNSENT, UNSENT_MS, 0, UNSENT_DOUBLINGS},
    {"slower than before", 12 * UNSENT, 4 * UNSENT_MS, 3, 1},
    {"fewer than before", UINT32_MAX, UNSENT_MS, 1, 0},
    {"after a pause", 8 * UNSENT, 1000 * UNSENT_MS, 3, 0},
};

static uint32_t unsent_limit_of_socket(int fd)
{
    uint32_t bytes = 0;
    socklen_t length = sizeof bytes;

    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, &length), 0);
    return bytes;
}

START_TEST(limit_follows_the_rate_of_the_client)
{
    const struct rate *rate = &rates[_i];

    open_wire(0, PLAIN, &rows[0], -1);
    wire_limit_unsent(&kit.wire, UNSENT);
    kit.wire.unsent_max <<= rate->before;
    kit.wire.unsent_doublings = rate->before;
    kit.wire.confirmed = UINT32_MAX;
    kit.wire.sent = UINT32_MAX + rate->confirmed;
    kit.wire.confirmed_ms = (uint16_t)(kit.loop.clock.monotonic_ms - rate->elapsed_ms);
    wire_adapt_unsent(&kit.wire);
    ck_assert_msg(kit.wire.unsent_doublings == rate->after, "%s: %u", rate->name, kit.wire.unsent_doublings);
    ck_assert_uint_eq(kit.wire.unsent_max, (uint32_t)UNSENT << rate->after);
    if (rate->before != rate->after)
        ck_assert_uint_eq(unsent_limit_of_socket(kit.wire.fd), (uint32_t)UNSENT << rate->after);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
}
END_TEST

/* With each backend. */
START_TEST(sends_measure_the_rate)
{
    int fd = kit_file(KIT_PATTERN);

    open_wire(_i, PLAIN, &rows[0], fd);
    wire_limit_unsent(&kit.wire, FRAME);
    kit.wire.confirmed = UINT32_MAX;
    kit.wire.confirmed_ms = (uint16_t)(kit.loop.clock.monotonic_ms - UNSENT_PERIOD_MS);
    plan_frames(&rows[0], fd);
    kit_pump(&kit);
    expect_frames();
    ck_assert_uint_ne(kit.wire.confirmed, UINT32_MAX);
    for (int i = 0; i < 2; i++)
        (void)wire_transfer_end(&kit.wire, &transfers[i]);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
    close(fd);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, one_frame_waits_for_the_socket, 0, ROWS * KINDS * backend_count());
    tcase_add_loop_test(tcase, limit_follows_the_rate_of_the_client, 0, sizeof rates / sizeof rates[0]);
    tcase_add_loop_test(tcase, sends_measure_the_rate, 0, backend_count());
    tcase_add_loop_test(tcase, turn_ends_after_the_read_of_its_span, 0, backend_count());
}

int main(void)
{
    return run_suite("wire turns", add_tests);
}
