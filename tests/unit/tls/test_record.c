#include "base/limits.h"
#include "hex.h"
#include "tls/aead_choice.h"
#include "tls/record.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>

static char into[LIMIT_RECORD_PLAINTEXT + RECORD_OVERHEAD], other[sizeof(into)],
    text[LIMIT_RECORD_PLAINTEXT + 1];

/* The engine under test; OpenSSL replaces it for ciphers that it lacks. */
static struct aead_choice choice;

static void use_openssl(void)
{
    memset(choice.kind, AEAD_OPENSSL, sizeof(choice.kind));
}

static void use_ipsec_mb(void)
{
    memset(choice.kind, AEAD_IPSEC_MB, sizeof(choice.kind));
}

static struct record_key make_key(uint16_t version, uint8_t cipher, uint8_t seed)
{
    struct record_key key = {.version = version, .cipher = cipher, .sequence = 5};

    memset(key.key, seed, record_key_length(cipher));
    memset(key.iv, seed + 1, sizeof(key.iv));
    memset(key.explicit_nonce, 0xff, 7);
    return key;
}

static ssize_t seal(struct cipher_context_cache *cache, struct record_key *key,
                    struct cipher_context **context, uint8_t type, const char *from, size_t length, char *to)
{
    struct iovec part = {(void *)(uintptr_t)from, length};

    return record_seal(cache, key, context, type, &part, 1, to);
}

/* RFC 8448 3: the records that server and client send under their application keys after the handshake. */
static const struct vector {
    const char *key, *iv;
    uint64_t sequence;
    uint8_t type;
    const char *plaintext, *record;
} vectors[] = {
    {"9f02283b6c9c07efc26bb9f2ac92e356", "cf782b88dd83549aadf1e984", 1, RECORD_APPLICATION_DATA,
     "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031",
     "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb501a59a8fcc49c4"
     "bf2e5f0a21c0047c2"
     "abf332540dd032e167c2955d"},
    {"9f02283b6c9c07efc26bb9f2ac92e356", "cf782b88dd83549aadf1e984", 2, RECORD_ALERT, "0100",
     "1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9"},
    {"17422dda596ed5d9acd890e3c63f5051", "5b78923dee08579033e523d9", 0, RECORD_APPLICATION_DATA,
     "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031",
     "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1"
     "f5a6292a2977014bd"
     "1e3deae63aeebb21694915e4"},
};

START_TEST(rfc_8448_records)
{
    const struct vector *vector = &vectors[_i];
    struct cipher_context_cache *cache = cipher_context_cache_create(1, &choice);
    struct record_key key = {
        .version = RECORD_TLS_1_3, .cipher = RECORD_AES_128_GCM, .sequence = vector->sequence};
    struct cipher_context *context = NULL;
    uint8_t plaintext[128], expected[256];
    size_t length = from_hex(vector->plaintext, plaintext), expected_value = from_hex(vector->record, expected);

    from_hex(vector->key, key.key);
    from_hex(vector->iv, key.iv);
    ck_assert_int_eq(seal(cache, &key, &context, vector->type, (char *)plaintext, length, into),
                     (ssize_t)expected_value);
    ck_assert_mem_eq(into, expected, expected_value);
    ck_assert_uint_eq(key.sequence, vector->sequence + 1);
    cipher_context_cache_destroy(cache);
    ck_assert_ptr_null(context);
}
END_TEST

static const struct kind {
    uint16_t version;
    uint8_t cipher;
    size_t head, overhead;
} kinds[] = {
    {RECORD_TLS_1_3, RECORD_AES_128_GCM, 5, 22},       {RECORD_TLS_1_3, RECORD_AES_256_GCM, 5, 22},
    {RECORD_TLS_1_3, RECORD_CHACHA20_POLY1305, 5, 22}, {RECORD_TLS_1_2, RECORD_AES_128_GCM, 13, 29},
    {RECORD_TLS_1_2, RECORD_AES_256_GCM, 13, 29},      {RECORD_TLS_1_2, RECORD_CHACHA20_POLY1305, 5, 21},
};

/* With the same sequence number, one part, many parts, all in place and the first one in place give the same record. */
START_TEST(plaintext_in_parts_seals_the_same)
{
    static const size_t lengths[] = {0, 1, 15, 16, 17, 255, 1200, 4096, 16383, 16384};
    const struct kind *kind = &kinds[_i];
    struct cipher_context_cache *cache = cipher_context_cache_create(2, &choice);
    struct cipher_context *context = NULL;

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct record_key key = make_key(kind->version, kind->cipher, 3), again = key, third = key, fourth = key;
        size_t length = lengths[i], split = length / 3, head = record_head(&key);
        struct iovec parts[] = {{text, split},
                                {NULL, 0},
                                {text + split, 1 * (length > split)},
                                {text + split + (length > split), 0},
                                {NULL, 0}};

        parts[3].iov_len = length - split - parts[2].iov_len;
        ck_assert_uint_eq(head, kind->head);
        ck_assert_uint_eq(record_overhead(&key), kind->overhead);
        ssize_t sealed = seal(cache, &key, &context, 23, text, length, into);
        ck_assert_int_eq(sealed, (ssize_t)(length + kind->overhead));
        ck_assert_int_eq(record_seal(cache, &again, &context, 23, parts, 5, other), sealed);
        ck_assert_mem_eq(into, other, (size_t)sealed);
        memset(other, 0, sizeof(other));
        memcpy(other + head, text, length);
        ck_assert_int_eq(seal(cache, &third, &context, 23, other + head, length, other), sealed);
        ck_assert_mem_eq(into, other, (size_t)sealed);
        ck_assert_uint_eq(key.sequence, 6);
        ck_assert_mem_eq(&key, &third, sizeof(key));
        memset(other, 0, sizeof(other));
        memcpy(other + head, text, split);
        parts[0] = (struct iovec){other + head, split};
        parts[1] = (struct iovec){text + split, length - split};
        ck_assert_int_eq(record_seal(cache, &fourth, &context, 23, parts, 2, other), sealed);
        ck_assert_mem_eq(into, other, (size_t)sealed);
    }
    record_release(cache, &context);
    cipher_context_cache_destroy(cache);
}
END_TEST

START_TEST(no_parts_seal_an_empty_record)
{
    const struct kind *kind = &kinds[_i];
    struct cipher_context_cache *cache = cipher_context_cache_create(2, &choice);
    struct record_key key = make_key(kind->version, kind->cipher, 3);
    struct cipher_context *context = NULL;

    ck_assert_int_eq(record_seal(cache, &key, &context, 23, NULL, 0, into), (ssize_t)kind->overhead);
    cipher_context_cache_destroy(cache);
}
END_TEST

START_TEST(explicit_nonce_counts_up)
{
    struct cipher_context_cache *cache = cipher_context_cache_create(1, &choice);
    struct record_key key = make_key(RECORD_TLS_1_2, RECORD_AES_128_GCM, 1);
    struct cipher_context *context = NULL;
    static const uint8_t first[8] = {255, 255, 255, 255, 255, 255, 255, 254}, wrapped[8] = {0};

    memcpy(key.explicit_nonce, first, 8);
    ck_assert_int_gt(seal(cache, &key, &context, 23, "a", 1, into), 0);
    ck_assert_mem_eq(into + 5, first, 8);
    ck_assert_int_gt(seal(cache, &key, &context, 23, "a", 1, into), 0);
    ck_assert_uint_eq((uint8_t)into[12], 255);
    ck_assert_mem_eq(key.explicit_nonce, wrapped, 8);
    cipher_context_cache_destroy(cache);
}
END_TEST

START_TEST(rejected_records_use_no_sequence_number)
{
    struct cipher_context_cache *cache = cipher_context_cache_create(1, &choice);
    struct record_key key = make_key(RECORD_TLS_1_2, RECORD_AES_128_GCM, 1), before = key;
    struct cipher_context *context = NULL;
    struct iovec parts[] = {{text, LIMIT_RECORD_PLAINTEXT}, {text, 1}},
                 endless[] = {{text, SIZE_MAX}, {text, SIZE_MAX}};

    ck_assert_int_eq(record_seal(cache, &key, &context, 23, parts, 2, into), -EMSGSIZE);
    ck_assert_int_eq(record_seal(cache, &key, &context, 23, endless, 2, into), -EMSGSIZE);
    ck_assert_mem_eq(&key, &before, sizeof(key));
    key.cipher = RECORD_NONE;
    ck_assert_int_eq(seal(cache, &key, &context, 23, "a", 1, into), -EINVAL);
    key.cipher = 77;
    ck_assert_int_eq(seal(cache, &key, &context, 23, "a", 1, into), -EINVAL);
    key.cipher = RECORD_AES_128_GCM;
    key.version = 0x0302;
    ck_assert_int_eq(seal(cache, &key, &context, 23, "a", 1, into), -EINVAL);
    ck_assert_uint_eq(key.sequence, before.sequence);
    cipher_context_cache_destroy(cache);
}
END_TEST

START_TEST(rule_10_key_expires_at_the_record_limit)
{
    struct cipher_context_cache *cache = cipher_context_cache_create(1, &choice);
    struct record_key key = make_key(RECORD_TLS_1_3, RECORD_AES_128_GCM, 1);
    struct cipher_context *context = NULL;
    int alerts = 0;

    key.sequence = LIMIT_RECORDS_PER_KEY - 1;
    ck_assert_int_gt(seal(cache, &key, &context, RECORD_APPLICATION_DATA, "a", 1, into), 0);
    ck_assert_int_eq(seal(cache, &key, &context, RECORD_APPLICATION_DATA, "a", 1, into), -EKEYEXPIRED);
    ck_assert_int_gt(seal(cache, &key, &context, RECORD_HANDSHAKE, "a", 1, into), 0);
    while (seal(cache, &key, &context, RECORD_ALERT, "a", 1, into) > 0)
        ck_assert_int_lt(alerts++, 100);
    ck_assert_int_eq(seal(cache, &key, &context, RECORD_ALERT, "a", 1, into), -EKEYEXPIRED);
    cipher_context_cache_destroy(cache);
}
END_TEST

/* With more connections than contexts, each record equals the one that a separate cache for its connection gives. */
START_TEST(contexts_are_reused_across_connections)
{
    enum { CONNECTIONS = 7 };
    struct cipher_context_cache *few = cipher_context_cache_create((unsigned)_i, &choice), *own[CONNECTIONS];
    struct record_key keys[CONNECTIONS], copies[CONNECTIONS];
    struct cipher_context *contexts[CONNECTIONS] = {NULL}, *own_slots[CONNECTIONS] = {NULL};

    for (int i = 0; i < CONNECTIONS; i++) {
        own[i] = cipher_context_cache_create(1, &choice);
        keys[i] = copies[i] = make_key(kinds[i % 6].version, kinds[i % 6].cipher, (uint8_t)(10 + i));
    }
    for (int round = 0; round < 200; round++) {
        int i = (round * round + round / 3) % CONNECTIONS;
        ssize_t length = seal(few, &keys[i], &contexts[i], 23, text, (size_t)round, into);
        ck_assert_int_eq(length, seal(own[i], &copies[i], &own_slots[i], 23, text, (size_t)round, other));
        ck_assert_mem_eq(into, other, (size_t)length);
        int live = 0;
        for (int j = 0; j < CONNECTIONS; j++)
            live += contexts[j] != NULL;
        ck_assert_int_le(live, _i ? _i : 1);
        if (round % 11 == 0)
            record_release(few, &contexts[i]);
        if (round == 100)
            memset(keys[i].key, 99, 16), memset(copies[i].key, 99, 16); /* the changed key is detected */
    }
    for (int i = 0; i < CONNECTIONS; i++)
        cipher_context_cache_destroy(own[i]);
    cipher_context_cache_destroy(few);
    for (int i = 0; i < CONNECTIONS; i++)
        ck_assert_ptr_null(contexts[i]);
    cipher_context_cache_destroy(NULL);
}
END_TEST

/* Both engines produce the same record, whichever of them sealed the previous record. */
START_TEST(engines_take_turns)
{
    struct aead_choice plain = {0};
    struct cipher_context_cache *cache = cipher_context_cache_create(2, &choice),
                                *reference = cipher_context_cache_create(2, &plain);
    const struct kind *kind = &kinds[_i];
    struct record_key key = make_key(kind->version, kind->cipher, 9), same = key,
                      next = make_key(RECORD_TLS_1_3, 1 + _i % 3, 7);
    struct cipher_context *context = NULL, *reference_context = NULL, *third = NULL;

    for (size_t length = 0; length < 600; length += 13) {
        ssize_t sealed = seal(cache, &key, &context, 23, text, length, into);

        ck_assert_int_eq(sealed, seal(reference, &same, &reference_context, 23, text, length, other));
        ck_assert_mem_eq(into, other, (size_t)sealed);
        ck_assert_int_gt(seal(cache, &next, &third, 23, text, length, into), 0);
        if (length % 39 == 0)
            record_release(cache, &third);
    }
    cipher_context_cache_destroy(cache);
    cipher_context_cache_destroy(reference);
}
END_TEST

/* With one context, each cipher replaces the key of another engine. */
START_TEST(one_context_for_all_ciphers)
{
    struct cipher_context_cache *cache = cipher_context_cache_create(1, &choice);
    struct cipher_context *contexts[RECORD_CIPHERS] = {NULL};
    struct record_key keys[RECORD_CIPHERS];

    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++)
        keys[cipher] = make_key(RECORD_TLS_1_3, cipher, 4);
    for (int round = 0; round < 50; round++) {
        int cipher = 1 + round * round % 3;

        ck_assert_int_eq(seal(cache, &keys[cipher], &contexts[cipher], 23, text, 500, into), 522);
        for (int i = RECORD_AES_128_GCM; i < RECORD_CIPHERS; i++)
            ck_assert_int_eq(contexts[i] != NULL, i == cipher);
    }
    cipher_context_cache_destroy(cache);
}
END_TEST

/* The memory of all keys is limited, not only their number. */
START_TEST(the_memory_of_keys_is_limited)
{
    enum { CONNECTIONS = 2 * LIMIT_CIPHERS_LIVE };
    struct cipher_context_cache *cache = cipher_context_cache_create(CONNECTIONS, &choice);
    static struct cipher_context *contexts[CONNECTIONS];
    struct aead *aead = aead_open((enum aead_kind)choice.kind[RECORD_AES_128_GCM]);
    size_t live = 0;

    for (int i = 0; i < CONNECTIONS; i++) {
        struct record_key key = make_key(RECORD_TLS_1_3, RECORD_AES_128_GCM, (uint8_t)i);

        ck_assert_int_gt(seal(cache, &key, &contexts[i], 23, "a", 1, into), 0);
    }
    for (int i = 0; i < CONNECTIONS; i++)
        live += contexts[i] != NULL;
    ck_assert_uint_le(live * aead->key_size, LIMIT_CIPHER_BYTES);
    ck_assert_uint_ge(live, LIMIT_CIPHERS_LIVE / 4);
    aead_close(aead);
    cipher_context_cache_destroy(cache);
}
END_TEST

static TCase *tests_of(const char *engine, void (*use)(void))
{
    TCase *all = tcase_create(engine);

    tcase_add_checked_fixture(all, use, NULL);
    tcase_add_loop_test(all, rfc_8448_records, 0, 3);
    tcase_add_loop_test(all, plaintext_in_parts_seals_the_same, 0, 6);
    tcase_add_loop_test(all, no_parts_seal_an_empty_record, 0, 6);
    tcase_add_test(all, explicit_nonce_counts_up);
    tcase_add_test(all, rejected_records_use_no_sequence_number);
    tcase_add_test(all, rule_10_key_expires_at_the_record_limit);
    tcase_add_loop_test(all, contexts_are_reused_across_connections, 0, 4);
    tcase_add_loop_test(all, engines_take_turns, 0, 6);
    tcase_add_test(all, one_context_for_all_ciphers);
    tcase_add_test(all, the_memory_of_keys_is_limited);
    return all;
}

int main(void)
{
    Suite *suite = suite_create("record");
    struct aead *other_engine = aead_open(AEAD_IPSEC_MB);
    SRunner *runner;

    suite_add_tcase(suite, tests_of("openssl", use_openssl));
    if (other_engine)
        suite_add_tcase(suite, tests_of("ipsec-mb", use_ipsec_mb));
    else
        puts("ipsec-mb is not built or does not run here: its records are not tested");
    aead_close(other_engine);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
