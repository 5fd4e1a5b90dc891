/* Preconditions: each line of the input is a field line. The status is 0, 304 or 412, and never 304 for a POST. */
#include "fuzz.h"

#include "http/conditional.h"

static const struct str names[] = {
    {"If-Match", 8}, {"If-None-Match", 13}, {"If-Modified-Since", 17}, {"If-Unmodified-Since", 19},
    {"If-Range", 8},
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct validators validators = {STR("\"abc\""), 784111777};
    struct str rest = str_of((const char *)bytes, size);
    struct request request = {.method = METHOD_GET};
    struct arena arena;
    int status;

    if (size > 2000)
        return 0;
    arena_init(&arena, NULL, 0);
    while (rest.data) {
        struct str line = str_cut(&rest, '\n');
        struct str name = names[line.length ? (unsigned char)line.data[0] % 5 : 0];

        HOLDS(headers_add(&request.headers, &arena, name, str_trim(str_skip(line, 1))) == 0);
    }
    status = conditional_check(&request, &validators, 784111800, size % 2);
    HOLDS(status == 0 || status == 304 || status == 412);
    conditional_range_allowed(&request, &validators, 784111800);
    request.method = METHOD_POST;
    status = conditional_check(&request, &validators, 784111800, size % 2);
    HOLDS(status == 0 || status == 412);
    arena_reset(&arena);
    return 0;
}
