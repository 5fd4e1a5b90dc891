/*
 * Sequences of heads in memory and spans of a file, as in a multipart response: the system calls that they need, over
 * plain TCP, with encryption in user space, and on a promoted connection (a scripted kernel).
 */
#include "spans_fixture.h"

#include <string.h>
#include <unistd.h>

enum { HEAD = 80, SPAN = 16384, STRIDE = 256 * 1024, PAIRS = 30 };

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

static void add_tests(TCase *tcase)
{
    int count = KINDS * backend_count();

    tcase_add_loop_test(tcase, short_spans_cost_two_calls, 0, count);
    tcase_add_loop_test(tcase, longer_spans_are_not_copied, 0, 3 * backend_count());
    tcase_add_loop_test(tcase, short_span_of_a_truncated_file, 0, count);
}

int main(void)
{
    return run_suite("spans", add_tests);
}
