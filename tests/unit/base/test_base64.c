#include "base/base64.h"

#include "../runner.h"

static const struct {
    const char *text;
    const char *decoded; /* NULL: invalid */
} cases[] = {
    {"", ""},
    {"Zg==", "f"},
    {"Zm8=", "fo"},
    {"Zm9v", "foo"},
    {"QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin:open sesame"},
    {"+/+/", "\xfb\xff\xbf"},
    {"Zg=", NULL},
    {"Zg", NULL},
    {"Zh==", NULL},
    {"Z===", NULL},
    {"====", NULL},
    {"Zg==Zg==", NULL},
    {"Zm 9", NULL},
    {"Zm-_", NULL},
};

START_TEST(valid_text_is_decoded_and_invalid_rejected)
{
    struct arena arena;
    struct str found;

    arena_init(&arena, NULL, 0);
    found = base64_decode(&arena, str_from(cases[_i].text));
    if (!cases[_i].decoded)
        ck_assert_ptr_null(found.data);
    else
        ck_assert(found.data && str_equal(found, str_from(cases[_i].decoded)));
    arena_reset(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, valid_text_is_decoded_and_invalid_rejected, 0, sizeof(cases) / sizeof(cases[0]));
}

int main(void)
{
    return run_suite("base64", add_tests);
}
