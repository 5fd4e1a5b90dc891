#include "build_options.h"
#include "tls/ktls.h"
#include "tls/ktls_layout.h"

#include "../runner.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

/* A scripted kernel: refuses by version, cipher and call, and records the keys. */
static struct kernel {
    int ulp_error;            /* of TCP_ULP */
    int tx_error;             /* of TLS_TX */
    uint16_t refused_version; /* the version whose TLS_TX is refused; 0: all versions, if tx_error is set */
    uint16_t refused_cipher;
    int rekey_error; /* of the second TLS_TX on one socket */
    int send_error;
    unsigned ulp_calls, tx_calls, sends;
    int last_fd;
    union ktls_key key;
    socklen_t key_length;
    uint8_t type;
    char sent[64];
    size_t sent_length;
} kernel;

static int refuse(int error)
{
    errno = error;
    return error ? -1 : 0;
}

static bool is_refused(void)
{
    return kernel.tx_error &&
           (!kernel.refused_version || kernel.refused_version == kernel.key.head.version) &&
           (!kernel.refused_cipher || kernel.refused_cipher == kernel.key.head.cipher_type);
}

static int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    if (level == IPPROTO_TCP) {
        ck_assert_int_eq(name, TCP_ULP);
        ck_assert_str_eq(value, "tls");
        kernel.ulp_calls++;
        kernel.last_fd = -1;
        return refuse(kernel.ulp_error);
    }
    ck_assert_int_eq(level, 282);
    ck_assert_int_eq(name, TLS_TX);
    ck_assert_uint_le(length, sizeof(kernel.key));
    kernel.tx_calls++;
    memcpy(&kernel.key, value, length);
    kernel.key_length = length;
    if (kernel.last_fd == fd)
        return refuse(kernel.rekey_error);
    kernel.last_fd = fd;
    return refuse(is_refused() ? kernel.tx_error : 0);
}

static ssize_t fake_sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct cmsghdr *control = CMSG_FIRSTHDR(message);

    ck_assert_int_eq(control->cmsg_level, 282);
    ck_assert_int_eq(control->cmsg_type, TLS_SET_RECORD_TYPE);
    ck_assert_uint_eq(control->cmsg_len, CMSG_LEN(1));
    ck_assert_int_eq(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (kernel.send_error)
        return refuse(kernel.send_error);
    kernel.sends++;
    kernel.type = *CMSG_DATA(control);
    kernel.sent_length = message->msg_iov[0].iov_len;
    memcpy(kernel.sent, message->msg_iov[0].iov_base, kernel.sent_length);
    return (ssize_t)kernel.sent_length;
}

/* Returns the most recent key. */
static int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    ck_assert_int_eq(level, 282);
    ck_assert_int_eq(name, TLS_TX);
    if (*length != kernel.key_length)
        return refuse(EINVAL);
    memcpy(value, &kernel.key, *length);
    return 0;
}

static const struct ktls_calls calls = {fake_setsockopt, fake_sendmsg, fake_getsockopt};

static struct record_key make_key(uint16_t version, uint8_t cipher)
{
    struct record_key key = {.version = version, .cipher = cipher, .sequence = 0x0102030405060708};

    for (size_t i = 0; i < record_key_length(cipher); i++)
        key.key[i] = (uint8_t)(i + 1);
    for (size_t i = 0; i < sizeof(key.iv); i++)
        key.iv[i] = (uint8_t)(0x40 + i);
    if (version == RECORD_TLS_1_2 && cipher != RECORD_CHACHA20_POLY1305)
        memset(key.iv + 4, 0, 8);
    for (size_t i = 0; i < 8 && version == RECORD_TLS_1_2 && cipher != RECORD_CHACHA20_POLY1305; i++)
        key.explicit_nonce[i] = (uint8_t)(0x80 + i);
    return key;
}

static void reset(void)
{
    memset(&kernel, 0, sizeof(kernel));
    kernel.last_fd = -1;
    kernel.rekey_error = EBUSY;
}

START_TEST(rule_05_the_kernel_gets_the_current_state)
{
    static const unsigned char sequence[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct record_key key = make_key(_i ? RECORD_TLS_1_3 : RECORD_TLS_1_2, RECORD_AES_128_GCM);

    reset();
    ck_assert_int_eq(ktls_enable(&calls, 5, &key), KTLS_OK);
    ck_assert_uint_eq(kernel.key_length, sizeof(struct tls12_crypto_info_aes_gcm_128));
    ck_assert_uint_eq(kernel.key.head.version, _i ? TLS_1_3_VERSION : TLS_1_2_VERSION);
    ck_assert_uint_eq(kernel.key.head.cipher_type, TLS_CIPHER_AES_GCM_128);
    ck_assert_mem_eq(kernel.key.aes_128_gcm.key, key.key, 16);
    ck_assert_mem_eq(kernel.key.aes_128_gcm.salt, key.iv, 4);
    ck_assert_mem_eq(kernel.key.aes_128_gcm.iv, _i ? key.iv + 4 : key.explicit_nonce, 8);
    ck_assert_mem_eq(kernel.key.aes_128_gcm.rec_seq, sequence, 8);
}
END_TEST

/* A key in the layout of linux/tls.h, which OpenSSL uses, remains unchanged when it is read and written. */
START_TEST(layouts_are_read_and_written)
{
    for (unsigned version = RECORD_TLS_1_2; version <= RECORD_TLS_1_3; version++)
        for (uint8_t cipher = RECORD_AES_128_GCM; cipher <= RECORD_CHACHA20_POLY1305; cipher++) {
            struct record_key key = make_key((uint16_t)version, cipher), back;
            union ktls_key layout;
            ck_assert_uint_gt(ktls_key_write(&key, &layout), 0);
            ck_assert_int_eq(ktls_key_read(&layout, &back), 0);
            ck_assert_mem_eq(&key, &back, sizeof(key));
        }
}
END_TEST

START_TEST(rule_02_unknown_offers_are_declined)
{
    union ktls_key layout = {.head = {TLS_1_3_VERSION, TLS_CIPHER_AES_CCM_128}};
    struct record_key key = {.cipher = RECORD_NONE};

    ck_assert_int_eq(ktls_key_read(&layout, &key), -EINVAL);
    layout.head.cipher_type = 0xffff;
    ck_assert_int_eq(ktls_key_read(&layout, &key), -EINVAL);
    layout.head.cipher_type = TLS_CIPHER_AES_GCM_128;
    layout.head.version = 0x0302;
    ck_assert_int_eq(ktls_key_read(&layout, &key), -EINVAL);
    ck_assert_uint_eq(ktls_key_write(&key, &layout), 0);
    key.cipher = 99;
    ck_assert_uint_eq(ktls_key_write(&key, &layout), 0);
}
END_TEST

static const struct {
    int ulp_error, tx_error;
    enum ktls_reason promoted, probed;
    const char *name; /* in the output of the probe */
} refusals[] = {
    {0, 0, KTLS_OK, KTLS_OK, "ok"},
    {EEXIST, 0, KTLS_OK, KTLS_OK, "ok"},
    {ENOENT, 0, KTLS_NO_MODULE, KTLS_NO_MODULE, "no-module"},
    {EPERM, 0, KTLS_NO_PERMISSION, KTLS_NO_PERMISSION, "no-permission"},
    {EACCES, 0, KTLS_NO_PERMISSION, KTLS_NO_PERMISSION, "no-permission"},
    {ENOPROTOOPT, 0, KTLS_ULP_REFUSED, KTLS_ULP_REFUSED, "ulp-refused"},
    {ENOTCONN, 0, KTLS_ULP_REFUSED, KTLS_ULP_REFUSED, "ulp-refused"},
    {0, EINVAL, KTLS_TX_REFUSED, KTLS_CIPHER, "cipher"},
    {0, ENOENT, KTLS_TX_REFUSED, KTLS_CIPHER, "cipher"},
    {0, ENOMEM, KTLS_TX_REFUSED, KTLS_CIPHER, "cipher"},
};
enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };

START_TEST(refusals_have_their_reasons)
{
    struct record_key key = make_key(RECORD_TLS_1_3, RECORD_AES_256_GCM), before = key;
    struct ktls_support support;
    char line[512];

    reset();
    kernel.ulp_error = refusals[_i].ulp_error;
    kernel.tx_error = refusals[_i].tx_error;
    ck_assert_int_eq(ktls_enable(&calls, 5, &key), refusals[_i].promoted);
    ck_assert_mem_eq(&key, &before, sizeof(key));
    ck_assert_uint_eq(kernel.tx_calls, kernel.ulp_error && kernel.ulp_error != EEXIST ? 0 : 1);
    ktls_probe(&calls, &support);
    for (int version = 0; version < 2; version++)
        for (int cipher = RECORD_AES_128_GCM; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
            ck_assert_int_eq(support.reason[version][cipher], refusals[_i].probed);
    ck_assert_str_eq(ktls_reason_name(support.reason[1][RECORD_AES_128_GCM]), refusals[_i].name);
    struct str text = ktls_describe(&support, line, sizeof(line));
    ck_assert_msg(str_starts(text, refusals[_i].probed == KTLS_OK
                                       ? STR("kTLS: available (TLS 1.3: AES-128-GCM, AES-256-GCM, ")
                                       : STR("kTLS: not available: ")),
                  STR_FMT, STR_ARG(text));
    if (refusals[_i].probed == KTLS_NO_MODULE) {
        ck_assert_int_ge(str_search(text, STR("modprobe tls")), 0);
        ck_assert_int_eq(support.error, ENOENT);
    }
}
END_TEST

static const struct {
    uint16_t version, cipher;
    const char *words;
} ciphers[] = {
    {TLS_1_3_VERSION, TLS_CIPHER_CHACHA20_POLY1305,
     "kTLS: available (TLS 1.3: AES-128-GCM, AES-256-GCM; TLS 1.2: AES-128-GCM, AES-256-GCM, "
     "ChaCha20-Poly1305)"},
    {TLS_1_3_VERSION, 0, "kTLS: available (TLS 1.2: AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305)"},
    {0, TLS_CIPHER_AES_GCM_256,
     "kTLS: available (TLS 1.3: AES-128-GCM, ChaCha20-Poly1305; TLS 1.2: AES-128-GCM, ChaCha20-Poly1305)"},
    {0, 0, "kTLS: not available: the kernel refuses every cipher: Invalid argument"},
};

START_TEST(rule_19_each_cipher_is_probed)
{
    struct ktls_support support;
    char line[512], small[20];

    reset();
    kernel.tx_error = EINVAL;
    kernel.refused_version = ciphers[_i].version;
    kernel.refused_cipher = ciphers[_i].cipher;
    ktls_probe(&calls, &support);
    ck_assert_uint_eq(kernel.ulp_calls, 6);
    struct str text = ktls_describe(&support, line, sizeof(line));
    ck_assert_msg(str_equal(text, str_from(ciphers[_i].words)), STR_FMT, STR_ARG(text));
    ck_assert(!support.rekey);
    ck_assert(str_equal(ktls_describe(&support, small, sizeof(small)), str_of(line, sizeof(small))));
    ck_assert_uint_eq(ktls_describe(&support, small, 0).length, 0);
}
END_TEST

START_TEST(rekeying_is_probed_and_used)
{
    struct record_key key = make_key(RECORD_TLS_1_3, RECORD_AES_128_GCM);
    struct ktls_support support;
    char line[512];

    reset();
    kernel.rekey_error = _i ? 0 : EBUSY;
    ktls_probe(&calls, &support);
    ck_assert(support.rekey == (_i == 1));
    ck_assert((str_search(ktls_describe(&support, line, sizeof(line)), STR("; rekeying)")) >= 0) ==
              (_i == 1));
    ck_assert_int_eq(ktls_enable(&calls, 5, &key), KTLS_OK);
    ck_assert_int_eq(ktls_rekey(&calls, 5, &key), _i ? 0 : -EBUSY);
}
END_TEST

START_TEST(kernel_reports_record_count)
{
    struct record_key key = make_key(_i / 3 ? RECORD_TLS_1_3 : RECORD_TLS_1_2, (uint8_t)(1 + _i % 3));
    struct record_key counted = {.version = key.version, .cipher = key.cipher, .sequence = 5}, other = counted;

    reset();
    ck_assert_int_eq(ktls_enable(&calls, 5, &key), KTLS_OK);
    ck_assert_int_eq(ktls_read_sequence(&calls, 5, &counted), 0);
    ck_assert_uint_eq(counted.sequence, key.sequence);
    other.sequence = key.sequence;
    ck_assert_mem_eq(&counted, &other, sizeof(other)); /* only the sequence number changed */
    counted.cipher = (uint8_t)(counted.cipher == RECORD_AES_128_GCM ? RECORD_AES_256_GCM : RECORD_AES_128_GCM);
    ck_assert_int_eq(ktls_read_sequence(&calls, 5, &counted), -EINVAL);
    ck_assert_uint_eq(counted.sequence, key.sequence);
}
END_TEST

START_TEST(records_carry_their_type)
{
    static const char big[16385];

    reset();
    ck_assert_int_eq(ktls_send_record(&calls, 5, RECORD_ALERT, STR("\x01\x00")), 2);
    ck_assert_uint_eq(kernel.type, RECORD_ALERT);
    ck_assert_mem_eq(kernel.sent, "\x01\x00", 2);
    kernel.send_error = EAGAIN;
    ck_assert_int_eq(ktls_send_record(&calls, 5, RECORD_HANDSHAKE, STR("x")), -EAGAIN);
    ck_assert_int_eq(ktls_send_record(&calls, 5, RECORD_HANDSHAKE, str_of(big, sizeof(big))), -EMSGSIZE);
    ck_assert_uint_eq(kernel.sends, 1);
}
END_TEST

START_TEST(every_reason_has_a_name)
{
    for (int i = 0; i < KTLS_REASONS; i++)
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(ktls_reason_name((enum ktls_reason)i), ktls_reason_name((enum ktls_reason)j));
    ck_assert_str_eq(ktls_reason_name(KTLS_REASONS), "unknown");
}
END_TEST

/* A build without kernel TLS makes no system call and reports "not-built". */
START_TEST(build_without_ktls_declines)
{
    struct record_key key = make_key(RECORD_TLS_1_3, RECORD_AES_128_GCM), before = key;
    struct ktls_support support;
    char line[512];

    reset();
    ck_assert_int_eq(ktls_enable(&calls, 5, &key), KTLS_NOT_BUILT);
    ck_assert_int_eq(ktls_rekey(&calls, 5, &key), -EOPNOTSUPP);
    ck_assert_int_eq(ktls_read_sequence(&calls, 5, &key), -EOPNOTSUPP);
    ck_assert_int_eq(ktls_send_record(&calls, 5, RECORD_ALERT, STR("\x01\x00")), -EOPNOTSUPP);
    ck_assert_mem_eq(&key, &before, sizeof(key));
    ktls_probe(&calls, &support);
    for (int version = 0; version < 2; version++)
        for (int cipher = RECORD_AES_128_GCM; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
            ck_assert_str_eq(ktls_reason_name(support.reason[version][cipher]), "not-built");
    ck_assert(!support.rekey);
    ck_assert(str_equal(ktls_describe(&support, line, sizeof(line)),
                        STR("kTLS: not available: not built in (meson option ktls)")));
    ck_assert_uint_eq(kernel.ulp_calls + kernel.tx_calls + kernel.sends, 0);
}
END_TEST

/* For any result of the real kernel, the probe completes and does not truncate its lines. */
START_TEST(real_kernel_probe)
{
    struct ktls_support support;
    char line[512];

    ktls_probe(&ktls_calls_kernel, &support);
    struct str text = ktls_describe(&support, line, sizeof(line));
    ck_assert(str_starts(text, STR("kTLS: ")));
    if (support.reason[1][RECORD_AES_128_GCM] == KTLS_OK)
        ck_assert_int_ge(str_search(text, STR("AES-128-GCM")), 0);
    else
        ck_assert_int_ge(str_search(text, STR("not available")), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    if (strcmp(BUILD_KTLS, "built in") == 0) {
        tcase_add_loop_test(tcase, rule_05_the_kernel_gets_the_current_state, 0, 2);
        tcase_add_loop_test(tcase, refusals_have_their_reasons, 0, REFUSALS);
        tcase_add_loop_test(tcase, rule_19_each_cipher_is_probed, 0, sizeof(ciphers) / sizeof(ciphers[0]));
        tcase_add_loop_test(tcase, rekeying_is_probed_and_used, 0, 2);
        tcase_add_loop_test(tcase, kernel_reports_record_count, 0, 6);
        tcase_add_test(tcase, records_carry_their_type);
    } else {
        tcase_add_test(tcase, build_without_ktls_declines);
    }
    tcase_add_test(tcase, layouts_are_read_and_written);
    tcase_add_test(tcase, rule_02_unknown_offers_are_declined);
    tcase_add_test(tcase, every_reason_has_a_name);
    tcase_add_test(tcase, real_kernel_probe);
}

int main(void)
{
    return run_suite("ktls", add_tests);
}
