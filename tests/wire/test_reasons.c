/* $tls_path_reason has a value for each cause. The table has a row for every value. */
#include "kit.h"
#include "scripted.h"

#include "build_options.h"
#include "tls/ktls_choice.h"
#include "tls/tls_session_private.h"

#include "../unit/runner.h"

#include <errno.h>
#include <unistd.h>

static struct kit kit;

enum { LARGE = 100000, SMALL = 100, PLAIN = 0, TLS_1_3 = 1, CBC = 7 };

static const struct row {
    const char *reason, *path;
    int transport;
    enum ktls_reason probed; /* the result of the probe */
    size_t file, bytes;      /* the response */
    bool off, no_sendfile, no_offer;
    enum tls_ktls setting;   /* ssl_ktls, unless `off` */
    uint64_t kernel_from;    /* the size from which the kernel was measured to be faster */
    int fragment; /* max_fragment_length of the client */
    int ulp_error, tx_error;
} rows[] = {
    {"ok", "ktls-sendfile", TLS_1_3, KTLS_OK, .file = LARGE},
    {"plain", "plain-sendfile", PLAIN, KTLS_OK, .file = LARGE},
    {"plain", "plain", PLAIN, KTLS_OK, .bytes = SMALL},
    {"off", "user", TLS_1_3, KTLS_OK, .file = LARGE, .off = true},
    {"off", "user", TLS_1_3, KTLS_OFF, .file = LARGE},
    {"off", "user", TLS_1_3, KTLS_OK, .bytes = SMALL, .off = true},
    {"off", "user", TLS_1_3, KTLS_OK, .bytes = LARGE, .off = true},
    {"not-built", "user", TLS_1_3, KTLS_NOT_BUILT, .file = LARGE},
    {"no-module", "user", TLS_1_3, KTLS_NO_MODULE, .file = LARGE},
    {"no-permission", "user", TLS_1_3, KTLS_NO_PERMISSION, .file = LARGE},
    {"ulp-refused", "user", TLS_1_3, KTLS_ULP_REFUSED, .file = LARGE},
    {"cipher", "user", TLS_1_3, KTLS_CIPHER, .file = LARGE},
    {"cipher", "user", 4, KTLS_CIPHER, .file = LARGE}, /* TLS 1.2 */
    {"no-module", "user", TLS_1_3, KTLS_OK, .file = LARGE, .ulp_error = ENOENT},
    {"no-permission", "user", TLS_1_3, KTLS_OK, .file = LARGE, .ulp_error = EPERM},
    {"ulp-refused", "user", TLS_1_3, KTLS_OK, .file = LARGE, .ulp_error = ENOTCONN},
    {"tx-refused", "user", TLS_1_3, KTLS_OK, .file = LARGE, .tx_error = EINVAL},
    {"no-key", "openssl", TLS_1_3, KTLS_OK, .file = LARGE, .no_offer = true},
    {"no-key", "openssl", 4, KTLS_OK, .file = LARGE, .no_offer = true},
    {"suite", "openssl", CBC, KTLS_OK, .file = LARGE},
    {"suite", "openssl", CBC, KTLS_OK, .bytes = SMALL},
    {"max-fragment", "openssl", TLS_1_3, KTLS_OK, .file = LARGE, .fragment = TLSEXT_max_fragment_length_512},
    {"max-fragment", "openssl", 4, KTLS_OK, .file = LARGE, .fragment = TLSEXT_max_fragment_length_4096},
    {"ok", "ktls-sendfile", TLS_1_3, KTLS_OK, .file = LARGE, .kernel_from = LARGE},
    {"ok", "ktls-sendfile", TLS_1_3, KTLS_OK, .file = LARGE, .kernel_from = KTLS_NEVER, .setting = TLS_KTLS_ON},
    {"user-faster", "user", TLS_1_3, KTLS_OK, .file = LARGE, .kernel_from = LARGE + 1},
    {"user-faster", "user", TLS_1_3, KTLS_OK, .file = LARGE, .kernel_from = KTLS_NEVER},
    {"user-faster", "user", 4, KTLS_OK, .file = LARGE, .kernel_from = KTLS_NEVER},
    {"no-module", "user", TLS_1_3, KTLS_NO_MODULE, .file = LARGE, .kernel_from = KTLS_NEVER},
    {"small", "user", TLS_1_3, KTLS_OK, .file = SMALL, .kernel_from = KTLS_NEVER},
    {"bytes", "user", TLS_1_3, KTLS_OK, .bytes = LARGE, .kernel_from = KTLS_NEVER},
    {"off", "user", TLS_1_3, KTLS_OK, .file = LARGE, .off = true, .kernel_from = KTLS_NEVER},
    {"small", "user", TLS_1_3, KTLS_OK, .file = SMALL},
    {"small", "user", TLS_1_3, KTLS_OK, .bytes = SMALL},
    {"small", "user", TLS_1_3, KTLS_NO_MODULE, .bytes = SMALL},
    {"bytes", "user", TLS_1_3, KTLS_OK, .bytes = LARGE},
    {"sendfile-off", "user", TLS_1_3, KTLS_OK, .file = LARGE, .no_sendfile = true},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool needs_the_calls(const struct row *row)
{
    return row->ulp_error || row->tx_error || strcmp(row->reason, "ok") == 0;
}

static void answer(const struct row *row)
{
    int fd = kit_file(LARGE);
    size_t length = row->file + row->bytes;

    if (row->file)
        kit_plan_file(&kit, fd, 0, row->file);
    else
        kit_plan_bytes(&kit, str_of(kit_pattern(), row->bytes));
    kit_client_send(&kit, "GET\n");
    kit.raw = strcmp(row->reason, "ok") == 0;
    kit_run_until_received(&kit, length);
    ck_assert_uint_eq(kit.got_length, length);
    ck_assert_mem_eq(kit.got, kit_pattern(), length);
    close(fd);
}

START_TEST(each_cause_has_its_reason)
{
    const struct row *row = &rows[_i % ROWS];
    struct ktls_choice choice = {.offload = false};

    if (needs_the_calls(row) && strcmp(BUILD_KTLS, "built in") != 0)
        return;
    for (int cipher = 0; cipher < RECORD_CIPHERS; cipher++)
        choice.threshold[cipher] = row->kernel_from;
    memset(&kernel, 0, sizeof kernel);
    kernel.ulp_error = row->ulp_error;
    kernel.tx_error = row->tx_error;
    kit_prepare(&kit, _i / ROWS, &transports[row->transport]);
    kit.shared.ktls_calls = &scripted_calls;
    for (int cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
        kit.support.reason[0][cipher] = kit.support.reason[1][cipher] = row->probed;
    kit.tls.ktls = row->off ? TLS_KTLS_OFF : row->setting;
    kit.shared.ktls_choice = &choice;
    kit.settings.sendfile = !row->no_sendfile;
    kit_open(&kit, 0);
    if (row->no_offer) /* as an OpenSSL built without kTLS */
        SSL_clear_options(kit.wire.tls->ssl, SSL_OP_ENABLE_KTLS);
    if (row->fragment)
        ck_assert_int_eq(SSL_set_tlsext_max_fragment_length(kit.client, (uint8_t)row->fragment), 1);
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit); /* for the tickets */
    answer(row);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_str_eq(wire_path_name(kit.transfer.path), row->path);
    ck_assert_str_eq(wire_reason_name(kit.transfer.reason), row->reason);
    ck_assert_uint_eq(kit.counters.transfers[kit.transfer.path], 1);
    ck_assert_uint_eq(kit.counters.declines[kit.transfer.reason],
                      strcmp(row->reason, "ok") != 0 && strcmp(row->reason, "plain") != 0);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
}
END_TEST

/*
 * A file shorter than the threshold and a body of bytes cause no promotion. A file of the threshold's length causes
 * one, whether the owner passes it at once or in parts (rule 4).
 */
START_TEST(rule_04_the_threshold_decides)
{
    int fd = kit_file(LARGE);
    size_t given = _i % 2 ? LARGE : LARGE - 1;

    memset(&kernel, 0, sizeof kernel);
    kit_prepare(&kit, _i / 2, &transports[TLS_1_3]);
    kit.shared.ktls_calls = &scripted_calls;
    for (int cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
        kit.support.reason[1][cipher] = KTLS_OK;
    kit.tls.ktls_threshold = LARGE;
    kit_open(&kit, 0);
    kit_plan_file(&kit, fd, 0, LARGE - 1);
    kit_plan_bytes(&kit, str_of(kit_pattern(), LARGE));
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, 2 * LARGE - 1);
    ck_assert_int_eq(kernel.ulp_calls + kernel.tx_calls, 0);
    kit_plan_file(&kit, fd, 0, given);
    kit.plan[kit.planned - 1].file.whole = LARGE;
    kit_client_send(&kit, "GET\n");
    kit.raw = true;
    kit_run_until_received(&kit, 2 * LARGE - 1 + given);
    ck_assert_uint_eq(kit.counters.promotions, strcmp(BUILD_KTLS, "built in") == 0);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
    close(fd);
}
END_TEST

/* A body of a pipe is spliced unless user space is faster at every size. */
START_TEST(pipes_where_user_space_is_faster)
{
    struct ktls_choice choice = {.offload = false};
    static const struct {
        enum tls_ktls setting;
        uint64_t from;
        bool accepted;
    } cases[] = {{TLS_KTLS_AUTO, 0, true},
                 {TLS_KTLS_AUTO, 1 << 20, true},
                 {TLS_KTLS_AUTO, KTLS_NEVER, false},
                 {TLS_KTLS_ON, KTLS_NEVER, true},
                 {TLS_KTLS_OFF, 0, false}};

    kit_prepare(&kit, _i, &transports[TLS_1_3]);
    kit.shared.ktls_choice = &choice;
    for (int cipher = 0; cipher < RECORD_CIPHERS; cipher++)
        kit.support.reason[1][cipher] = KTLS_OK;
    kit_open(&kit, 0);
    kit_until_open(&kit);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int cipher = 0; cipher < RECORD_CIPHERS; cipher++)
            choice.threshold[cipher] = cases[i].from;
        ((struct tls_settings *)(uintptr_t)tls_session_settings(kit.wire.tls))->ktls = cases[i].setting;
        ck_assert_msg(((wire_accepts(&kit.wire) & CHUNK_PIPE) != 0) == cases[i].accepted, "case %zu", i);
    }
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
}
END_TEST

START_TEST(each_reason_has_a_row)
{
    for (unsigned reason = 0; reason < WIRE_REASONS; reason++) {
        bool found = false;

        for (size_t i = 0; i < ROWS; i++)
            found = found || strcmp(rows[i].reason, wire_reason_name(reason)) == 0;
        ck_assert_msg(found, "no row for \"%s\"", wire_reason_name(reason));
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, each_cause_has_its_reason, 0, ROWS * backend_count());
    tcase_add_loop_test(tcase, rule_04_the_threshold_decides, 0, 2 * backend_count());
    tcase_add_loop_test(tcase, pipes_where_user_space_is_faster, 0, backend_count());
    tcase_add_test(tcase, each_reason_has_a_row);
}

int main(void)
{
    return run_suite("reasons", add_tests);
}
