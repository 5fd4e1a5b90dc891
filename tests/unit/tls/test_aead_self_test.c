/* The test of an engine for AEAD finds each kind of fault. */
#include "tls/aead_choice.h"

#include "../runner.h"

/* An engine with a fault. */
static struct faulty {
    struct aead aead;
    struct aead *real;
    size_t from; /* records of fewer bytes are right */
    bool parts_only;
    enum {
        FAULT_NONE,
        FAULT_CIPHERTEXT,
        FAULT_TAG,
        FAULT_END,
        FAULT_NULL,
        FAULT_PLAINTEXT,
        FAULT_ACCEPTS,
        FAULT_REFUSES
    } fault;
} faulty;

static bool faulty_key_set(struct aead *aead, void **key, uint8_t cipher, bool decrypts, const uint8_t *bytes)
{
    return faulty.real->engine->key_set(faulty.real, key, cipher, decrypts, bytes);
}

static bool faulty_decrypt(struct aead *aead, void *key, const struct aead_sealed *sealed, uint8_t *to)
{
    bool good = faulty.real->engine->decrypt(faulty.real, key, sealed, to);

    if (sealed->length < faulty.from)
        return good;
    if (faulty.fault == FAULT_PLAINTEXT)
        to[0] ^= 1;
    return faulty.fault == FAULT_ACCEPTS || (good && faulty.fault != FAULT_REFUSES);
}

static uint8_t *faulty_seal(struct aead *aead, void *key, const struct aead_record *record, uint8_t *to)
{
    uint8_t *end = faulty.real->engine->seal(faulty.real, key, record, to);

    if ((size_t)(end - to) < faulty.from || (faulty.parts_only && record->count == 1))
        return end;
    switch (faulty.fault) {
    case FAULT_NONE:
    case FAULT_PLAINTEXT:
    case FAULT_ACCEPTS:
    case FAULT_REFUSES:
        return end;
    case FAULT_CIPHERTEXT:
        to[0] ^= 1;
        return end;
    case FAULT_TAG:
        end[-1] ^= 1;
        return end;
    case FAULT_END:
        return end - 1;
    case FAULT_NULL:
        return NULL;
    }
    return end;
}

static void faulty_key_free(void *key)
{
    faulty.real->engine->key_free(key);
}

START_TEST(wrong_answer_of_an_engine_fails_its_test)
{
    static const struct aead_engine engine = {.name = "faulty",
                                              .built = true,
                                              .key_set = faulty_key_set,
                                              .key_free = faulty_key_free,
                                              .seal = faulty_seal,
                                              .decrypt = faulty_decrypt};

    faulty.aead.engine = &engine;
    faulty.real = aead_open(AEAD_OPENSSL);
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        for (int row = 0; row < 4 * 3 * 2; row++) {
            static const size_t from[] = {0, 1000, 16000};

            faulty.from = from[row / 4 % 3];
            faulty.parts_only = row / 12;
            faulty.fault = FAULT_NONE;
            ck_assert(aead_test(&faulty.aead, cipher));
            faulty.fault = FAULT_CIPHERTEXT + row % 4;
            ck_assert(!aead_test(&faulty.aead, cipher));
            faulty.fault = FAULT_PLAINTEXT + row % 3;
            ck_assert(!aead_test(&faulty.aead, cipher));
        }
    }
    aead_close(faulty.real);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, wrong_answer_of_an_engine_fails_its_test);
}

int main(void)
{
    return run_suite("aead_self_test", add_tests);
}
