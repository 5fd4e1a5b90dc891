#include "hex.h"
#include "tls/record.h"

#include "../runner.h"

#include <errno.h>

/* RFC 8448 3 (AES-128-GCM, SHA-256): the application traffic secrets of both sides. */
static const struct derivation {
    const char *secret, *key, *iv;
} derivations[] = {
    {"a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643", "9f02283b6c9c07efc26bb9f2ac92e356",
     "cf782b88dd83549aadf1e984"},
    {"9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5", "17422dda596ed5d9acd890e3c63f5051",
     "5b78923dee08579033e523d9"},
};

START_TEST(rfc_8448_keys)
{
    uint8_t secret[48], key[32], iv[12];
    struct record_key derived;
    size_t length = from_hex(derivations[_i].secret, secret);

    from_hex(derivations[_i].key, key);
    from_hex(derivations[_i].iv, iv);
    ck_assert_int_eq(record_key_derive(RECORD_AES_128_GCM, str_of((char *)secret, length), &derived), 0);
    ck_assert_mem_eq(derived.key, key, 16);
    ck_assert_mem_eq(derived.iv, iv, 12);
    ck_assert_uint_eq(derived.sequence, 0);
    ck_assert_uint_eq(derived.version, RECORD_TLS_1_3);
    ck_assert_uint_eq(derived.cipher, RECORD_AES_128_GCM);
}
END_TEST

START_TEST(lengths_are_checked)
{
    static const char secret[48];
    struct record_key key = {.version = 7};

    ck_assert_int_eq(record_key_derive(RECORD_AES_128_GCM, str_of(secret, 48), &key), -EINVAL);
    ck_assert_int_eq(record_key_derive(RECORD_AES_256_GCM, str_of(secret, 32), &key), -EINVAL);
    ck_assert_int_eq(record_key_derive(RECORD_CHACHA20_POLY1305, str_of(secret, 0), &key), -EINVAL);
    ck_assert_int_eq(record_key_derive(RECORD_NONE, str_of(secret, 32), &key), -EINVAL);
    ck_assert_int_eq(record_key_derive(99, str_of(secret, 32), &key), -EINVAL);
    ck_assert_uint_eq(key.version, 7);
    ck_assert_int_eq(record_key_derive(RECORD_AES_256_GCM, str_of(secret, 48), &key), 0);
    ck_assert_int_eq(record_key_derive(RECORD_CHACHA20_POLY1305, str_of(secret, 32), &key), 0);
    ck_assert_uint_eq(record_key_length(RECORD_AES_128_GCM), 16);
    ck_assert_uint_eq(record_key_length(RECORD_AES_256_GCM), 32);
    ck_assert_uint_eq(record_key_length(RECORD_NONE), 0);
    ck_assert_uint_eq(record_key_length(200), 0);
}
END_TEST

START_TEST(wiped_key_is_zero)
{
    struct record_key key, zero = {0};

    memset(&key, 0xaa, sizeof(key));
    record_key_wipe(&key);
    ck_assert_mem_eq(&key, &zero, sizeof(key));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, rfc_8448_keys, 0, 2);
    tcase_add_test(tcase, lengths_are_checked);
    tcase_add_test(tcase, wiped_key_is_zero);
}

int main(void)
{
    return run_suite("record_key", add_tests);
}
