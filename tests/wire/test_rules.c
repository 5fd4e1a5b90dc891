/*
 * Rules 4, 14 and 16 of kernel TLS: the condition for a promotion, the flags for a head, and the flags that are never
 * used. The kernel is scripted, and wrappers record the flags of each send. Rule 5 is in test_promotion.c.
 */
#include "kit.h"
#include "scripted.h"

#include "build_options.h"

#include "../unit/runner.h"

#include <unistd.h>

static struct kit kit;

/* The arguments of send(2) and sendmsg(2). */
static struct {
    int flags;                      /* of all calls together */
    unsigned calls, more;
    size_t more_length;             /* of the last one with MSG_MORE */
} request_control;

ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags)
{
    request_control.flags |= flags;
    request_control.calls++;
    if (flags & MSG_MORE) {
        request_control.more++;
        request_control.more_length = length;
    }
    return __real_send(fd, bytes, length, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    request_control.flags |= flags;
    request_control.calls++;
    return __real_sendmsg(fd, message, flags);
}

static void open_wire(int backend, int buffer)
{
    memset(&kernel, 0, sizeof kernel);
    kernel.counted = UINT64_MAX;
    kit_prepare(&kit, backend, &transports[1]);
    kit.shared.ktls_calls = &scripted_calls;
    for (int cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
        kit.support.reason[0][cipher] = kit.support.reason[1][cipher] = KTLS_OK;
    kit_open(&kit, buffer);
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit); /* for the tickets, which still need TLS */
    memset(&request_control, 0, sizeof request_control);
}

static void fetch_file(int fd, size_t length)
{
    size_t before = kit.got_length;

    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_file(&kit, fd, 0, length);
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, before + 4 + length);
    ck_assert_mem_eq(kit.got + before, "HEAD", 4);
    ck_assert_mem_eq(kit.got + before + 4, kit_pattern(), length);
}

/* Sends a file that is promoted. From here on the client reads the socket as it is. */
static void promote(int fd, size_t length)
{
    kit.raw = true;
    fetch_file(fd, length);
    ck_assert_int_eq(kernel.tx_calls, 1);
    ck_assert_uint_eq(kit.counters.promotions, 1);
}

static void give_bytes(size_t length)
{
    size_t before = kit.got_length;

    kit_plan_bytes(&kit, str_of(kit_pattern(), length));
    kit_pump(&kit);
    kit_run_until_received(&kit, before + length);
    ck_assert_mem_eq(kit.got + before, kit_pattern(), length);
}

static void close_wire(void)
{
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    close(kit.client_fd);
    kit.client_fd = -1;
    kit_until_closed(&kit);
    kit_close(&kit);
}

static void expect_reason(const char *path, const char *reason)
{
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_str_eq(wire_path_name(kit.transfer.path), path);
    ck_assert_str_eq(wire_reason_name(kit.transfer.reason), reason);
}

/* Below the threshold, and for a body of bytes of any length, the kernel gets no key. */
START_TEST(rule_04_only_large_files_are_promoted)
{
    int below = kit_file(65535), at = kit_file(65536);

    open_wire(_i, 0);
    fetch_file(below, 65535);
    expect_reason("user", "small");
    give_bytes(200000);
    expect_reason("user", "bytes");
    ck_assert_int_eq(kernel.ulp_calls + kernel.tx_calls, 0);
    promote(at, 65536);
    expect_reason("ktls-sendfile", "ok");
    close_wire();
    close(below);
    close(at);
}
END_TEST

/* Small records in user space do not delay the promotion of a large file. */
START_TEST(rule_04_small_records_do_not_delay_promotion)
{
    int fd = kit_file(65536);

    open_wire(_i, 0);
    kit.settings.small_records = true;
    promote(fd, 65536);
    expect_reason("ktls-sendfile", "ok");
    close_wire();
    close(fd);
}
END_TEST

/*
 * Head and file share records (rule 14). In user space the number of records shows this. With kernel TLS the wire sends
 * the head with MSG_MORE, and the only other call is sendfile.
 */
START_TEST(rule_14_head_and_body_share_a_record)
{
    int small = kit_file(1000), large = kit_file(100000);
    uint64_t records;

    open_wire(_i, 0);
    records = kit.counters.records;
    fetch_file(small, 1000);
    ck_assert_uint_eq(kit.counters.records, records + 1);
    memset(&request_control, 0, sizeof request_control);
    promote(large, 100000);
    ck_assert_uint_eq(kit.counters.records, records + 1);
    ck_assert_uint_eq(request_control.calls, 1);
    ck_assert_uint_eq(request_control.more, 1);
    ck_assert_uint_eq(request_control.more_length, 4);
    give_bytes(20000);
    ck_assert_uint_eq(request_control.calls, 2);
    ck_assert_uint_eq(request_control.more, 1); /* without MSG_MORE, because nothing follows */
    close_wire();
    close(small);
    close(large);
}
END_TEST

/*
 * Flags that kernel TLS refuses are never used. The scripted kernel itself checks that only a key for sending is set.
 */
START_TEST(rule_16_no_flags_that_the_kernel_refuses)
{
    int fd = kit_file(300000);

    open_wire(_i, 4096);
    promote(fd, 300000);
    give_bytes(60000);
    close_wire();
    ck_assert_uint_ge(request_control.calls, 2);
    ck_assert_int_eq(request_control.flags & ~(MSG_MORE | MSG_NOSIGNAL | MSG_DONTWAIT), 0);
    close(fd);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int backends = strcmp(BUILD_KTLS, "built in") == 0 ? backend_count() : 0;

    tcase_add_loop_test(tcase, rule_04_only_large_files_are_promoted, 0, backends);
    tcase_add_loop_test(tcase, rule_04_small_records_do_not_delay_promotion, 0, backends);
    tcase_add_loop_test(tcase, rule_14_head_and_body_share_a_record, 0, backends);
    tcase_add_loop_test(tcase, rule_16_no_flags_that_the_kernel_refuses, 0, backends);
}

int main(void)
{
    return run_suite("rules", add_tests);
}
