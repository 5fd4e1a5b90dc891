/*
 * Credentials in base64: a text is accepted if it is what OpenSSL writes for the bytes that OpenSSL reads from it, and
 * then has these bytes.
 */
#include "fuzz.h"

#include "base/base64.h"

#include <openssl/evp.h>
#include <string.h>

#define LONGEST 4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static unsigned char expected[LONGEST], encoded[2 * LONGEST];
    struct str text = str_of((const char *)bytes, size), decoded;
    struct arena arena;
    int length, padding = 0;

    if (size > LONGEST)
        return 0;
    arena_init(&arena, NULL, 0);
    decoded = base64_decode(&arena, text);
    while (padding < 2 && str_ends(str_slice(text, 0, size - (size_t)padding), STR("=")))
        padding++;
    length = EVP_DecodeBlock(expected, bytes, (int)size);
    length = length < padding ? -1 : length - padding;
    if (length >= 0 && (size_t)EVP_EncodeBlock(encoded, expected, length) == size && memcmp(encoded, bytes, size) == 0)
        HOLDS(decoded.data && str_equal(decoded, str_of((const char *)expected, (size_t)length)));
    else
        HOLDS(!decoded.data);
    arena_reset(&arena);
    return 0;
}
