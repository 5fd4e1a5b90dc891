/*
 * The hand-off to a scripted kernel. If a call fails, no byte is lost and the reason is recorded. If all succeed, the
 * following bytes are plaintext on the socket (the scripted kernel encrypts nothing) and in order, and the sequence
 * number is that of the next record.
 */
#include "promotion_fixture.h"

#include <errno.h>
#include <linux/tls.h>
#include <unistd.h>

static void fetch_file(int fd, size_t length)
{
    size_t before = kit.got_length;

    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_file(&kit, fd, 0, length);
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, before + 4 + length);
    ck_assert_uint_eq(kit.got_length, before + 4 + length);
    ck_assert_mem_eq(kit.got + before, "HEAD", 4);
    ck_assert_mem_eq(kit.got + before + 4, kit_pattern(), length);
}

static void close_wire(void)
{
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    kit_close(&kit);
}

static const struct {
    const char *name;
    int ulp_error, tx_error;
    const char *reason;
    int ulp_calls; /* calls during two responses; a refused call is not repeated */
} refusals[] = {
    {"no module", ENOENT, 0, "no-module", 1},         {"ulp not permitted", EPERM, 0, "no-permission", 1},
    {"ulp refused", EOPNOTSUPP, 0, "ulp-refused", 1}, {"not established", ENOTCONN, 0, "ulp-refused", 1},
    {"cipher refused", 0, EINVAL, "tx-refused", 1},   {"out of memory", 0, ENOMEM, "tx-refused", 1},
};
enum { REFUSALS = sizeof refusals / sizeof refusals[0], CIPHERS = 6 };

/* With each backend, version, cipher and refusal, after a small response in the middle of the connection. */
START_TEST(rule_12_refusal_loses_no_bytes)
{
    int fd = kit_file(1000000), small = kit_file(100);
    int row = _i % REFUSALS, cipher = _i / REFUSALS % CIPHERS, backend = _i / REFUSALS / CIPHERS;

    open_wire(backend, &transports[1 + cipher], true);
    kernel.ulp_error = refusals[row].ulp_error;
    kernel.tx_error = refusals[row].tx_error;
    kit_open(&kit, 0);
    fetch_file(small, 100);
    expect_reason("user", "small");
    ck_assert_int_eq(kernel.ulp_calls, 0);
    fetch_file(fd, 1000000);
    expect_reason("user", refusals[row].reason);
    fetch_file(fd, 1000000);
    expect_reason("user", refusals[row].reason);
    ck_assert_int_eq(kernel.ulp_calls, refusals[row].ulp_calls);
    ck_assert_uint_eq(kit.counters.promotions, 0);
    ck_assert_uint_eq(kit.counters.declines[KTLS_OK], 0);
    close_wire();
    close(fd);
    close(small);
}
END_TEST

/* A build without kernel TLS declines like the refusals above, for any value of kit.support. */
START_TEST(build_without_ktls_declines)
{
    int fd = kit_file(1000000);

    open_wire(_i / CIPHERS, &transports[1 + _i % CIPHERS], true);
    kit_open(&kit, 0);
    for (int i = 0; i < 2; i++) {
        fetch_file(fd, 1000000);
        expect_reason("user", "not-built");
    }
    ck_assert_int_eq(kernel.ulp_calls + kernel.tx_calls, 0);
    ck_assert_uint_eq(kit.counters.promotions, 0);
    close_wire();
    close(fd);
}
END_TEST

/* With each backend, version and cipher. */
START_TEST(rule_06_promotion_hands_over_key_and_sequence)
{
    static const uint16_t ciphers[] = {TLS_CIPHER_AES_GCM_128, TLS_CIPHER_AES_GCM_256,
                                       TLS_CIPHER_CHACHA20_POLY1305};
    int fd = kit_file(3000000), small = kit_file(100);
    int transport = 1 + _i % CIPHERS;
    uint64_t records;

    open_wire(_i / CIPHERS, &transports[transport], true);
    kit_open(&kit, 0);
    fetch_file(small, 100);
    (void)wire_transfer_end(&kit.wire, NULL);
    records = kit.counters.records;
    promote(fd, 3000000);
    ck_assert_int_eq(kernel.tx_calls, 1);
    ck_assert_uint_eq(kernel.version, transport <= 3 ? TLS_1_3_VERSION : TLS_1_2_VERSION);
    ck_assert_uint_eq(kernel.cipher, ciphers[(transport - 1) % 3]);
    ck_assert_uint_eq(kernel.sequence, records); /* not counted: the head of this response, which the kernel sent */
    ck_assert_uint_eq(kit.counters.records, records);
    ck_assert_uint_eq(kit.counters.promotions, 1);
    expect_reason("ktls-sendfile", "ok");
    ck_assert_uint_eq(kit.transfer.zero_copy, 3000000);
    ck_assert_uint_eq(kit.counters.bytes[PATH_KTLS_SENDFILE], 3000000);
    ck_assert_uint_eq(kit_counted(&kit), 104 + 3000004);
    finish_promoted();
    close(fd);
    close(small);
}
END_TEST

/* TLS 1.2: explicit nonces are visible on the wire. The nonce given to the kernel follows the last one. */
START_TEST(rule_07_kernel_gets_the_next_explicit_nonce)
{
    int fd = kit_file(100000), small = kit_file(100);
    uint64_t last = 0, handed = 0;
    unsigned count;

    open_wire(_i / 2, &transports[4 + _i % 2], true);
    kit_open(&kit, 0);
    for (int i = 0; i < 5; i++)
        fetch_file(small, 100);
    count = kit_nonces(&kit, &last);
    ck_assert_uint_eq(count, 1 + 5); /* Finished, and five responses */
    promote(fd, 100000);
    for (int i = 0; i < 8; i++)
        handed = handed << 8 | kernel.iv[i];
    ck_assert_uint_eq(handed, last + 1);
    ck_assert_uint_eq(kernel.sequence, count);
    finish_promoted();
    close(fd);
    close(small);
}
END_TEST

/* Record-sized calls are used only on a socket whose send buffer holds few segments. */
START_TEST(narrow_sockets_are_detected)
{
    static const struct {
        /*
         * `both`: buffers of both ends; `send_buffer`: the server's send buffer. A large buffer of the peer leads to
         * wide segments.
         */
        int both, send_buffer;
        bool small_send_buffer;
    } rows[] = {{0, 0, false}, {0, 4096, true}, {0, 60000, true}, {4096, 0, true}};
    int fd = kit_file(200000), row = _i % 4;

    open_wire(_i / 4, &transports[1], true);
    kit_open(&kit, rows[row].both);
    if (rows[row].send_buffer)
        setsockopt(kit.wire.fd, SOL_SOCKET, SO_SNDBUF, &rows[row].send_buffer, sizeof rows[row].send_buffer);
    promote(fd, 200000);
    ck_assert_int_eq(kit.wire.small_send_buffer, rows[row].small_send_buffer);
    finish_promoted();
    close(fd);
}
END_TEST

/* Sealed bytes in the queue are sent first; the key is handed over after the last of them. */
START_TEST(rule_05_promotion_waits_for_the_queue)
{
    int fd = kit_file(500000);
    size_t sealed;

    open_wire(_i, &transports[1], true);
    kit_open(&kit, 4096);
    kit_until_open(&kit);
    kit_plan_bytes(&kit, str_of(kit_pattern(), 60000));
    kit_plan_file(&kit, fd, 0, 500000);
    kit.read_max = 1;
    kit_client_send(&kit, "GET\n");
    for (int i = 0; i < 50; i++)
        kit_turn(&kit);
    ck_assert_int_eq(kernel.tx_calls, 0);
    kit.read_max = 0;
    while (kernel.tx_calls == 0) {
        kit.read_max = kit.got_length < 49152
                      ? 2000
                      : 1; /* the first three records are read as TLS; the promoted head begins in the fourth */
        kit_turn(&kit);
    }
    sealed = 60000 / 16384 * 16384;
    while (kit.got_length < sealed) {
        kit.read_max = sealed - kit.got_length;
        kit_turn(&kit);
    }
    ck_assert_uint_eq(kit.got_length, sealed);
    ck_assert_mem_eq(kit.got, kit_pattern(), sealed);
    kit_stop_client_tls(&kit);
    kit.read_max = 0;
    kit_run_until_received(&kit, 60000 - sealed + 500000);
    ck_assert_mem_eq(kit.got, kit_pattern() + sealed, 60000 - sealed);
    ck_assert_mem_eq(kit.got + 60000 - sealed, kit_pattern(), 500000);
    finish_promoted();
    close(fd);
}
END_TEST

/* In user space the request is answered by a new key. */
START_TEST(key_update_in_user_space)
{
    int fd = kit_file(100000);

    open_wire(_i, &transports[1], false);
    kit_open(&kit, 0);
    fetch_file(fd, 100000);
    ck_assert_int_eq(SSL_key_update(kit.client, SSL_KEY_UPDATE_REQUESTED), 1);
    fetch_file(fd, 100000);
    fetch_file(fd, 100000);
    ck_assert_uint_eq(kit.ending, 0);
    ck_assert_uint_lt(kit.wire.key.sequence, 20);
    close_wire();
    close(fd);
}
END_TEST

static void add_promotions(TCase *tcase, int backends)
{
    tcase_add_loop_test(tcase, rule_12_refusal_loses_no_bytes, 0, REFUSALS * CIPHERS * backends);
    tcase_add_loop_test(tcase, rule_06_promotion_hands_over_key_and_sequence, 0, CIPHERS * backends);
    tcase_add_loop_test(tcase, rule_07_kernel_gets_the_next_explicit_nonce, 0, 2 * backends);
    tcase_add_loop_test(tcase, narrow_sockets_are_detected, 0, 4 * backends);
    tcase_add_loop_test(tcase, rule_05_promotion_waits_for_the_queue, 0, backends);
}

static void add_tests(TCase *tcase)
{
    int backends = backend_count();

    if (strcmp(BUILD_KTLS, "built in") == 0)
        add_promotions(tcase, backends);
    else
        tcase_add_loop_test(tcase, build_without_ktls_declines, 0, CIPHERS * backends);
    tcase_add_loop_test(tcase, key_update_in_user_space, 0, backends);
}

int main(void)
{
    return run_suite("promotion", add_tests);
}
