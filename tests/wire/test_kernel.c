/*
 * Keys on a socket that the real kernel encrypts; OpenSSL reads. On a kernel without TLS the program reports this and
 * skips (77); the suite "vm" runs it on kernels with TLS.
 */
#include "kit.h"

#include "../unit/skip.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct kit kit;
static struct ktls_support support;
static unsigned next_keys; /* number of new server keys that the client has received */

enum { SUITES = 6, BODY = 4000000 };

static void client_secret(const SSL *client, const char *line)
{
    next_keys += strncmp(line, "SERVER_TRAFFIC_SECRET_N", 23) == 0;
}

/* `records_per_key` 0: the default. Returns false if the kernel lacks the cipher. */
static bool open_wire(int index, uint64_t records_per_key)
{
    const struct transport *transport = &transports[1 + index % SUITES];

    if (support.reason[transport->version == TLS1_3_VERSION][1 + index % 3] != KTLS_OK)
        return false;
    kit_prepare(&kit, index / SUITES, transport);
    kit.support = support;
    kit.shared.records_per_key = records_per_key;
    next_keys = 0;
    kit_open(&kit, 0);
    SSL_CTX_set_keylog_callback(kit.client_openssl, client_secret);
    return true;
}

static void fetch(int fd, size_t length)
{
    size_t before = kit.got_length;

    kit_plan_file(&kit, fd, 0, length);
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, before + length);
    ck_assert_uint_eq(kit.got_length, before + length);
    ck_assert_mem_eq(kit.got + before, kit_pattern(), length);
}

static void close_wire(void)
{
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    ck_assert(kit.got_close_notify);
    kit_close(&kit);
}

/*
 * The peer requests a new key in the middle of a body: the server passes it to a kernel that accepts a new key;
 * otherwise it completes the response and closes the connection.
 */
START_TEST(rule_09_key_update_during_a_body)
{
    int fd = kit_file(BODY);
    bool renewable = support.rekey;

    if (!open_wire(_i / 3 * SUITES + _i % 3, 0))
        return;
    fetch(fd, 100000);
    ck_assert_uint_eq(kit.counters.promotions, 1);
    kit.read_max = 30000;
    kit_plan_file(&kit, fd, 0, BODY);
    kit_client_send(&kit, "GET\n");
    for (unsigned requests = 1; requests <= 3; requests++) {
        kit_run_until_received(&kit, 100000 + requests * 500000);
        ck_assert_int_eq(SSL_key_update(kit.client, SSL_KEY_UPDATE_REQUESTED), 1);
        ck_assert_int_eq(SSL_do_handshake(kit.client), 1);
    }
    kit.read_max = 0;
    kit_run_until_received(&kit, 100000 + BODY);
    ck_assert_mem_eq(kit.got + 100000, kit_pattern(), BODY);
    if (renewable) {
        fetch(fd, 100000);
        ck_assert_uint_eq(next_keys, 3);
        ck_assert_uint_eq(kit.counters.rekeyings, 3);
    }
    ck_assert_uint_eq(kit.ending, renewable ? 0 : 1);
    close_wire();
    ck_assert_uint_eq(next_keys, renewable ? 3 : 0);
    close(fd);
}
END_TEST

/* The server replaces its key before the limit. 4 MB are about 250 records. */
START_TEST(rule_10_key_is_replaced_before_its_limit)
{
    int fd = kit_file(BODY);
    bool renewable;

    if (!open_wire(_i, 100))
        return;
    renewable = support.rekey && kit.transport->version == TLS1_3_VERSION;
    kit_until_open(&kit);
    if (!renewable) { /* the wire calls the owner before the limit, and does not exceed it */
        kit_plan_file(&kit, fd, 0, BODY);
        kit_client_send(&kit, "GET\n");
        kit_run_until_received(&kit, BODY);
        ck_assert_uint_eq(kit.ending, 1);
        ck_assert_uint_lt(kit.got_length, 100 * 16384);
        ck_assert_uint_gt(kit.got_length, 50 * 16384);
        ck_assert_mem_eq(kit.got, kit_pattern(), kit.got_length);
        ck_assert(!kit.got_close_notify);
        kit_until_closed(&kit);
        ck_assert_int_eq(kit.end, WIRE_CLOSE_ABORT);
        kit_close(&kit);
    } else {
        fetch(fd, BODY);
        fetch(fd, BODY);
        ck_assert_uint_ge(kit.counters.rekeyings, 4);
        ck_assert_uint_le(kit.counters.rekeyings, 8); /* the wire uses the kernel's record number, not an estimate */
        ck_assert_uint_eq(next_keys, kit.counters.rekeyings);
        ck_assert_uint_eq(kit.ending, 0);
        close_wire();
    }
    close(fd);
}
END_TEST

int main(void)
{
    char line[256];
    TCase *all;
    Suite *suite;
    SRunner *runner;
    int failed;

    ktls_probe(&ktls_calls_kernel, &support);
    printf(STR_FMT "\n", STR_ARG(ktls_describe(&support, line, sizeof line)));
    if (support.reason[1][RECORD_AES_128_GCM] != KTLS_OK)
        return skip_program("this kernel does not encrypt TLS");
    suite = suite_create("kernel");
    all = tcase_create("all");
    tcase_set_timeout(all, 0);
    tcase_add_loop_test(all, rule_09_key_update_during_a_body, 0, 3 * backend_count());
    tcase_add_loop_test(all, rule_10_key_is_replaced_before_its_limit, 0, SUITES * backend_count());
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_VERBOSE);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
