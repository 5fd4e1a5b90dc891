/* Limits of a key, and its replacement by the server (rule 10), in user space and in the scripted kernel. */
#include "key_fixture.h"

#include <unistd.h>

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

static void add_tests(TCase *tcase)
{
    int backends = backend_count();
    bool with_kernel = strcmp(BUILD_KTLS, "built in") == 0;

    tcase_add_loop_test(tcase, rule_10_new_key_in_user_space, 0, 7 * backends);
    if (with_kernel) {
        tcase_add_loop_test(tcase, rule_10_new_key_in_the_kernel, 0, backends);
        tcase_add_loop_test(tcase, rule_10_count_of_the_kernel_decides, 0, backends);
        tcase_add_loop_test(tcase, rule_10_expired_key_aborts_the_response, 0, 2 * backends);
    }
}

int main(void)
{
    return run_suite("key_limits", add_tests);
}
