/*
 * Frames of a file, as in HTTP/2: many of them per call, sent from a view of the file in memory. Over plain TCP, with
 * encryption in user space, and on a promoted connection (a scripted kernel).
 */
#include "spans_fixture.h"

#include <string.h>
#include <unistd.h>

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

static void add_tests(TCase *tcase)
{
    int count = KINDS * backend_count();

    tcase_add_loop_test(tcase, frames_of_a_file_are_gathered, 0, 2 * count);
    tcase_add_loop_test(tcase, frames_of_a_second_file_with_the_same_descriptor, 0, count);
    tcase_add_loop_test(tcase, frames_of_two_files_alternate, 0, count);
    tcase_add_loop_test(tcase, gathered_frames_to_a_slow_reader, 0, count);
    tcase_add_loop_test(tcase, truncated_file_of_frames, 0, 4 * backend_count());
    tcase_add_loop_test(tcase, abort_releases_views, 0, backend_count());
    tcase_add_loop_test(tcase, frames_without_a_view, 0, backend_count());
}

int main(void)
{
    return run_suite("frames", add_tests);
}
