/*
 * Sequences of heads in memory and spans of a file, as in a multipart response: the system calls that they need, over
 * plain TCP, with encryption in user space, and on a promoted connection (a scripted kernel).
 */
#include "kit.h"
#include "scripted.h"

#include "base/limits.h"
#include "build_options.h"

#include <check.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { HEAD = 80, SPAN = 16384, STRIDE = 256 * 1024, PAIRS = 30 };

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

static void open_wire(int backend, enum kind kind)
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
static void promote(int fd)
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

static void close_wire(enum kind kind)
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

/* With each backend and kind: at most two calls per span, and all bytes in order. */
START_TEST(short_spans_cost_two_calls)
{
    enum kind kind = (enum kind)(_i % KINDS);
    int fd = kit_file(KIT_PATTERN);

    open_wire(_i / KINDS, kind);
    if (kind == KERNEL)
        promote(fd);
    for (int i = 0; i < PAIRS; i++) {
        kit_plan_bytes(&kit, str_of(kit_pattern() + i, HEAD));
        kit_plan_file(&kit, fd, (int64_t)i * STRIDE, SPAN);
    }
    sends = reads = sendfiles = 0;
    kit_pump(&kit);
    kit_run_until_received(&kit, PAIRS * (HEAD + SPAN));
    ck_assert_uint_eq(kit.got_length, PAIRS * (HEAD + SPAN));
    for (int i = 0; i < PAIRS; i++) {
        const char *pair = kit.got + i * (HEAD + SPAN);

        ck_assert_mem_eq(pair, kit_pattern() + i, HEAD);
        ck_assert_mem_eq(pair + HEAD, kit_pattern() + i * STRIDE, SPAN);
    }
    ck_assert_uint_gt(reads, 0);
    ck_assert_uint_le(sends + reads + sendfiles, 2 * PAIRS);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_int_eq(kit.transfer.path, kind == PLAIN ? PATH_PLAIN : kind == USER ? PATH_USER : PATH_KTLS_SEND);
    ck_assert_uint_eq(kit.transfer.zero_copy, 0);
    close_wire(kind);
    close(fd);
}
END_TEST

/* With each backend: from LIMIT_COPIED_SPAN on, and for a part of a longer transfer, sendfile sends the span. */
START_TEST(longer_spans_are_not_copied)
{
    static const struct {
        uint64_t length, whole;
        bool direct;
    } rows[] = {{LIMIT_COPIED_SPAN - 1, 0, false}, {LIMIT_COPIED_SPAN, 0, true}, {1000, LIMIT_COPIED_SPAN, true}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    int fd = kit_file(KIT_PATTERN), row = _i % ROWS;
    size_t length = (size_t)rows[row].length;

    open_wire(_i / ROWS, PLAIN);
    kit_plan_file(&kit, fd, 5, length);
    kit.plan[kit.planned - 1].file.whole = rows[row].whole;
    sendfiles = 0;
    kit_pump(&kit);
    kit_run_until_received(&kit, length);
    ck_assert_uint_eq(kit.got_length, length);
    ck_assert_mem_eq(kit.got, kit_pattern() + 5, length);
    ck_assert_int_eq(sendfiles > 0, rows[row].direct);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_int_eq(kit.transfer.path, rows[row].direct ? PATH_PLAIN_SENDFILE : PATH_PLAIN);
    ck_assert_uint_eq(kit.transfer.zero_copy, rows[row].direct ? length : 0);
    close_wire(PLAIN);
    close(fd);
}
END_TEST

/* With each backend and kind: a copied span whose file is shorter aborts the response (rule 13). */
START_TEST(short_span_of_a_truncated_file)
{
    enum kind kind = (enum kind)(_i % KINDS);
    int fd = kit_file(1000000);

    open_wire(_i / KINDS, kind);
    if (kind == KERNEL)
        promote(fd);
    ck_assert_int_eq(ftruncate(fd, 10000), 0);
    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_file(&kit, fd, 0, SPAN);
    kit_pump(&kit);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ABORT);
    ck_assert(strstr(kit.last_log, "a file was truncated while it was sent"));
    ck_assert_uint_eq(kernel.controls, 0);
    kit_close(&kit);
    close(fd);
}
END_TEST

enum { FRAME_HEAD = 9, PAYLOAD = 16375, FRAMES = 31, BODY = FRAMES * PAYLOAD };

/* Plans a file as frames from `at` on; with `transfers`, as two bodies of the same bytes whose frames alternate. */
static void plan_frames(int fd, int64_t at, struct transfer *transfers)
{
    int frames = transfers ? FRAMES / 2 * 2 : FRAMES;
    size_t body = (size_t)frames / (transfers ? 2 : 1) * PAYLOAD;

    kit.planned = kit.given = 0;
    for (int i = 0; i < frames; i++) {
        size_t done = (size_t)(transfers ? i / 2 : i) * PAYLOAD;
        struct chunk *span;

        kit_plan_bytes(&kit, str_of(kit_pattern() + i, FRAME_HEAD));
        kit_plan_file(&kit, fd, at + (int64_t)done, PAYLOAD);
        span = &kit.plan[kit.planned - 1];
        span->file.run = (uint32_t)(body - done);
        span->file.whole = body;
        span->transfer = transfers ? &transfers[i % 2] : NULL;
    }
}

static void expect_frames(int64_t at, bool alternate)
{
    int frames = alternate ? FRAMES / 2 * 2 : FRAMES;

    kit_run_until_received(&kit, (size_t)frames * (FRAME_HEAD + PAYLOAD));
    ck_assert_uint_eq(kit.got_length, (size_t)frames * (FRAME_HEAD + PAYLOAD));
    for (int i = 0; i < frames; i++) {
        const char *frame = kit.got + (size_t)i * (FRAME_HEAD + PAYLOAD);

        ck_assert_mem_eq(frame, kit_pattern() + i, FRAME_HEAD);
        ck_assert_mem_eq(frame + FRAME_HEAD, kit_pattern() + at + (alternate ? i / 2 : i) * PAYLOAD, PAYLOAD);
    }
}

/* With each backend and kind, also from an offset that is no multiple of the page: many frames per call. */
START_TEST(frames_of_a_file_are_gathered)
{
    enum kind kind = (enum kind)(_i % KINDS);
    int fd = kit_file(KIT_PATTERN);
    int64_t at = _i / KINDS % 2 ? 12345 : 0;

    open_wire(_i / KINDS / 2, kind);
    if (kind == KERNEL)
        promote(fd);
    plan_frames(fd, at, NULL);
    sends = reads = sendfiles = 0;
    kit_pump(&kit);
    expect_frames(at, false);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_uint_eq(kit.shared.file_views, 0);
    if (kind == USER) {
        ck_assert_int_eq(kit.transfer.path, PATH_USER);
        ck_assert_uint_eq(kit.transfer.zero_copy, 0);
    } else {
        ck_assert_int_eq(kit.transfer.path, kind == KERNEL ? PATH_KTLS_MAPPED : PATH_PLAIN_MAPPED);
        ck_assert_uint_eq(kit.transfer.zero_copy, BODY - PAYLOAD); /* the last page is copied */
        ck_assert_uint_eq(sendfiles, 0);
        ck_assert_uint_le(sends + reads, FRAMES / 2);
    }
    close_wire(kind);
    close(fd);
}
END_TEST

/* With each backend and kind: a body of two files, as of slices; the second one has the descriptor of the first. */
START_TEST(frames_of_a_second_file_with_the_same_descriptor)
{
    enum kind kind = (enum kind)(_i % KINDS);
    int fd = kit_file(KIT_PATTERN), other = kit_file(KIT_PATTERN);
    int64_t at = 20 * PAYLOAD, shift = 4096;

    open_wire(_i / KINDS, kind);
    if (kind == KERNEL)
        promote(fd);
    plan_frames(fd, 0, NULL);
    kit_pump(&kit);
    expect_frames(0, false);
    ck_assert_int_eq(pwrite(other, kit_pattern() + at + shift, BODY, at), BODY);
    ck_assert_int_eq(dup2(other, fd), fd);
    kit.got_length = 0;
    plan_frames(fd, at, NULL);
    kit_pump(&kit);
    expect_frames(at + shift, false);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_uint_eq(kit.shared.file_views, 0);
    close_wire(kind);
    close(fd);
    close(other);
}
END_TEST

/* With each backend and kind: two transfers whose frames alternate; each has its own view and its own accounting. */
START_TEST(frames_of_two_files_alternate)
{
    enum kind kind = (enum kind)(_i % KINDS);
    struct transfer transfers[2] = {{0}};
    int fd = kit_file(KIT_PATTERN);

    open_wire(_i / KINDS, kind);
    if (kind == KERNEL)
        promote(fd);
    plan_frames(fd, 0, transfers);
    kit_pump(&kit);
    expect_frames(0, true);
    for (int i = 0; i < 2; i++) {
        struct transfer ended = wire_transfer_end(&kit.wire, &transfers[i]);

        ck_assert_uint_eq(ended.total, FRAMES / 2 * PAYLOAD);
        ck_assert_uint_eq(ended.zero_copy, kind == USER ? 0 : (FRAMES / 2 - 1) * PAYLOAD);
    }
    ck_assert_uint_eq(kit.shared.file_views, 0);
    close_wire(kind);
    close(fd);
}
END_TEST

/* With each backend and kind: small buffers and a slow reader; parts are queued while earlier ones are in flight. */
START_TEST(gathered_frames_to_a_slow_reader)
{
    enum kind kind = (enum kind)(_i % KINDS);
    int fd = kit_file(KIT_PATTERN), room = 300000;

    open_wire(_i / KINDS, kind);
    if (kind == KERNEL)
        promote(fd);
    ck_assert_int_eq(setsockopt(kit.wire.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    kit.read_max = 5000;
    plan_frames(fd, 4096, NULL);
    kit_pump(&kit);
    expect_frames(4096, false);
    close_wire(kind);
    ck_assert_uint_eq(kit.shared.file_views, 0);
    close(fd);
}
END_TEST

/* With each backend: a file that ends early, at a page or within one, also the last, aborts the response (rule 13). */
START_TEST(truncated_file_of_frames)
{
    static const off_t lengths[] = {0, 8 * 4096, 8 * 4096 + 100, BODY - 100};
    int fd = kit_file(KIT_PATTERN);
    off_t length = lengths[_i % 4];

    open_wire(_i / 4, PLAIN);
    plan_frames(fd, 0, NULL);
    kit.planned = 2; /* the view exists when the file is truncated */
    kit_pump(&kit);
    kit_run_until_received(&kit, FRAME_HEAD + PAYLOAD);
    ck_assert_uint_eq(kit.shared.file_views, 1);
    ck_assert_int_eq(ftruncate(fd, length), 0);
    kit.planned = 2 * FRAMES;
    kit_pump(&kit);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ABORT);
    ck_assert(strstr(kit.last_log, "a file was truncated while it was sent"));
    ck_assert_uint_lt(kit.got_length, (size_t)FRAMES * (FRAME_HEAD + PAYLOAD));
    kit_close(&kit);
    close(fd);
}
END_TEST

/* With each backend: the wire is closed while parts are in flight; no view remains mapped. */
START_TEST(abort_releases_views)
{
    int fd = kit_file(KIT_PATTERN), room = 4096;

    open_wire(_i, PLAIN);
    ck_assert_int_eq(setsockopt(kit.wire.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    plan_frames(fd, 0, NULL);
    kit_pump(&kit);
    ck_assert_uint_gt(kit.shared.file_views, 0);
    ck_assert_int_lt(kit.given, kit.planned);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    ck_assert_uint_eq(kit.shared.file_views, 0);
    kit_close(&kit);
    close(fd);
}
END_TEST

/* With each backend: no further view is possible, or the file cannot be mapped: sendfile sends the frames. */
START_TEST(frames_without_a_view)
{
    int fd = kit_file(KIT_PATTERN);

    open_wire(_i, PLAIN);
    kit.shared.file_views = LIMIT_FILE_VIEWS;
    plan_frames(fd, 0, NULL);
    sendfiles = 0;
    kit_pump(&kit);
    expect_frames(0, false);
    ck_assert_uint_gt(sendfiles, 0);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_int_eq(kit.transfer.path, PATH_PLAIN_SENDFILE);
    ck_assert_uint_eq(kit.shared.file_views, LIMIT_FILE_VIEWS);
    kit.shared.file_views = 0;
    close_wire(PLAIN);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spans");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int count = KINDS * backend_count();

    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, short_spans_cost_two_calls, 0, count);
    tcase_add_loop_test(all, longer_spans_are_not_copied, 0, 3 * backend_count());
    tcase_add_loop_test(all, short_span_of_a_truncated_file, 0, count);
    tcase_add_loop_test(all, frames_of_a_file_are_gathered, 0, 2 * count);
    tcase_add_loop_test(all, frames_of_a_second_file_with_the_same_descriptor, 0, count);
    tcase_add_loop_test(all, frames_of_two_files_alternate, 0, count);
    tcase_add_loop_test(all, gathered_frames_to_a_slow_reader, 0, count);
    tcase_add_loop_test(all, truncated_file_of_frames, 0, 4 * backend_count());
    tcase_add_loop_test(all, abort_releases_views, 0, backend_count());
    tcase_add_loop_test(all, frames_without_a_view, 0, backend_count());
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return count ? 1 : 0;
}
