/*
 * Measures how long AEAD engines take to seal a record in place.
 */
#include "tls/aead_choice.h"

#include "base/clock.h"
#include "base/limits.h"

#include <stdlib.h>

/* Each size takes about 50 to 100 us, of which the clock resolves 1 us. */
enum { SMALL_RECORDS = 192, LARGE_RECORDS = 16 };

static uint32_t time_records(struct aead *aead, void *key, const struct aead_record *record, uint8_t *into,
                             unsigned count)
{
    struct clock start, end;

    clock_read(&start);
    for (unsigned i = 0; i < count; i++) {
        if (!aead->engine->seal(aead, key, record, into))
            return UINT32_MAX;
    }
    clock_read(&end);
    return (uint32_t)((end.monotonic_us - start.monotonic_us) * 1000 / count);
}

static void measure_size(struct aead *aead, void *key, uint8_t cipher, uint8_t *into, size_t size,
                         unsigned count, uint32_t *best)
{
    static const uint8_t additional[5] = {23, 3, 3, 0, 0};
    uint8_t nonce[AEAD_NONCE] = {0};
    struct iovec part = {into, size};
    struct aead_record record = {.parts = &part,
                                 .count = 1,
                                 .cipher = cipher,
                                 .inner = 23,
                                 .additional_length = sizeof(additional),
                                 .additional = additional,
                                 .nonce = nonce};
    uint32_t ns = time_records(aead, key, &record, into, count);

    if (*best == 0 || ns < *best)
        *best = ns;
}

bool aead_measure(struct aead *aead, uint8_t cipher, struct aead_figures *best)
{
    uint8_t *into = calloc(1, LIMIT_RECORD_PLAINTEXT + RECORD_OVERHEAD), bytes[32] = {0};
    void *key = NULL;
    bool good = into && aead->engine->key_set(aead, &key, cipher, false, bytes);

    if (good) {
        measure_size(aead, key, cipher, into, AEAD_SMALL, SMALL_RECORDS, &best->small_ns);
        measure_size(aead, key, cipher, into, LIMIT_RECORD_PLAINTEXT, LARGE_RECORDS, &best->large_ns);
    }
    aead->engine->key_free(key);
    free(into);
    return good;
}
