/*
 * The formatter: input that libyaml can parse is formatted or rejected. The result has the same meaning and the same
 * comments, and formatting it again changes nothing.
 */
#include "fuzz.h"

#include "conf/format.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct arena arena;
    struct conf_errors errors = {.arena = &arena};
    struct buffer once = {0}, twice = {0};
    int error;

    arena_init(&arena, NULL, 256 * 1024 * 1024);
    error = conf_format(&arena, STR("input"), str_of((const char *)bytes, size), &errors, &once);
    HOLDS(error == 0 || (error == -EINVAL && errors.failed && once.length == 0));
    if (error == 0) {
        HOLDS(format_same(str_of((const char *)bytes, size), buffer_str(&once)) ||
              memchr(bytes, '\r', size) || (size >= 3 && bytes[0] == 0xEF) || once.length == 0);
        HOLDS(once.length == 0 || conf_format(&arena, STR("again"), buffer_str(&once), &errors, &twice) == 0);
        HOLDS(str_equal(buffer_str(&once), buffer_str(&twice)));
    }
    buffer_finish(&once);
    buffer_finish(&twice);
    arena_reset(&arena);
    return 0;
}
