#include "base/text_writer.h"

#include "../runner.h"

static struct arena arena;

START_TEST(joins_with_a_separator)
{
    const struct {
        struct str parts[3];
        size_t count;
        const char *joined;
    } cases[] = {
        {{STR("a"), STR("b"), STR("c")}, 3, "a, b, c"},
        {{STR(""), STR(""), STR("c")}, 3, ", , c"},
        {{STR("one")}, 1, "one"},
        {{STR("")}, 0, ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str joined = arena_join_with(&arena, cases[i].parts, cases[i].count, STR(", "));

        ck_assert_ptr_nonnull(joined.data);
        ck_assert_str_eq(joined.data, cases[i].joined);
        ck_assert_uint_eq(joined.length, strlen(cases[i].joined));
    }
    ck_assert_ptr_null(arena_join_with(&arena, (const struct str[]){STR("a"), {NULL, 0}}, 2, STR(",")).data);
    arena_reset(&arena);
}
END_TEST

START_TEST(failed_allocation_fails_the_text)
{
    struct arena small;
    const struct str parts[] = {STR("a"), STR("b")};

    arena_init(&small, NULL, 1);
    ck_assert_ptr_null(arena_join_with(&small, parts, 2, STR(",")).data);
    arena_reset(&small);
}
END_TEST

static const struct str whole = {"0123456789", 10};

/* Writes one byte in the first pass and ten in the second. */
static void grow(struct text_writer *writer, const void *subject)
{
    text_append(writer, writer->data ? whole : STR("0"));
}

static void shrink(struct text_writer *writer, const void *subject)
{
    text_append(writer, writer->data ? STR("0") : whole);
}

static void overflow(struct text_writer *writer, const void *subject)
{
    text_append(writer, str_of(whole.data, SIZE_MAX));
    text_append(writer, whole);
}

START_TEST(passes_that_differ_fail)
{
    ck_assert_ptr_null(arena_write(&arena, grow, NULL).data);
    ck_assert_ptr_null(arena_write(&arena, shrink, NULL).data);
    ck_assert_ptr_null(arena_write(&arena, overflow, NULL).data);
    arena_reset(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, joins_with_a_separator);
    tcase_add_test(tcase, failed_allocation_fails_the_text);
    tcase_add_test(tcase, passes_that_differ_fail);
}

int main(void)
{
    return run_suite("text_writer", add_tests);
}
