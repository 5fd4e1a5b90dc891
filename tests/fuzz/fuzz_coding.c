/*
 * Accept-Encoding: each line of the input is a field line. Each chosen coding was offered and is chosen once. If all
 * codings are rejected at the end of the field, none is chosen, and the response is not encoded.
 */
#include "fuzz.h"

#include "http/coding.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const enum coding offered[] = {CODING_ZSTD, CODING_GZIP};
    struct str rest = str_of((const char *)bytes, size);
    struct headers headers = {0};
    enum coding out[CODINGS];
    struct arena arena;
    unsigned count;

    if (size > 2000)
        return 0;
    arena_init(&arena, NULL, 0);
    while (rest.data)
        HOLDS(headers_add(&headers, &arena, STR("Accept-Encoding"), str_trim(str_cut(&rest, '\n'))) == 0);
    count = coding_choose(&headers, offered, 2, out);
    HOLDS(count <= 2);
    for (unsigned i = 0; i < count; i++)
        HOLDS(out[i] == CODING_ZSTD || out[i] == CODING_GZIP);
    HOLDS(count < 2 || out[0] != out[1]);
    HOLDS(headers_add(&headers, &arena, STR("Accept-Encoding"), STR("zstd;q=0, gzip;q=0, br;q=0, *;q=0")) == 0);
    HOLDS(coding_choose(&headers, offered, 2, out) == 0);
    arena_reset(&arena);
    return 0;
}
