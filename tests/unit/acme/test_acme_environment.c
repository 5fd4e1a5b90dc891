#include "acme/acme_environment.h"

#include "../runner.h"
#include "made.h"

static struct acme_environment found;

static void read_text(const char *text, unsigned mode)
{
    file_write(path_of("variables"), text, mode);
    acme_environment_read(path_of("variables"), &found);
}

START_TEST(variables_are_read_and_exported)
{
    static const char expected[] = "ONE=1\0_two2=a b=c\0THREE=\0FOUR= quoted \0FIVE='\0SIX=\"half";

    folder_make();
    read_text("# a comment\nONE=1\r\n\n  _two2=a b=c  \nTHREE=\nFOUR=\" quoted \"\nFIVE='\nSIX=\"half", 0600);
    ck_assert_str_eq(found.error, "");
    ck_assert_uint_eq(found.length, sizeof(expected));
    ck_assert(memcmp(found.text, expected, sizeof(expected)) == 0);
    ck_assert_int_eq(acme_environment_export(&found), 0);
    ck_assert_str_eq(getenv("_two2"), "a b=c");
    ck_assert_str_eq(getenv("FOUR"), " quoted ");
    clearenv();
    acme_environment_finish(&found);
    ck_assert_ptr_null(found.text);
    ck_assert_int_eq(acme_environment_export(&found), 0);
    folder_remove();
}
END_TEST

START_TEST(without_a_file_there_are_no_variables)
{
    acme_environment_read("", &found);
    ck_assert_ptr_null(found.text);
    ck_assert_str_eq(found.error, "");
    acme_environment_finish(&found);
}
END_TEST

START_TEST(other_lines_are_rejected_without_their_text)
{
    static const char *const bad[] = {"secret", "export A=secret", "=secret", "1A=secret", "A-B=secret", "A =secret"};
    char text[64];

    folder_make();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "GOOD=1\n\n%s\n", bad[i]);
        read_text(text, 0600);
        ck_assert_msg(strstr(found.error, "line 3 of \"/tmp/"), "%s: %s", bad[i], found.error);
        ck_assert_ptr_null(strstr(found.error, "secret"));
        ck_assert_ptr_null(found.text);
        ck_assert_uint_eq(found.length, 0);
    }
    folder_remove();
}
END_TEST

START_TEST(files_that_others_may_read_are_rejected)
{
    static const unsigned modes[] = {0644, 0640, 0604, 0620, 0601};

    folder_make();
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        read_text("A=1\n", modes[i]);
        ck_assert_ptr_nonnull(strstr(found.error, "chmod 600"));
        ck_assert_ptr_null(found.text);
        acme_environment_finish(&found);
        ck_assert_str_eq(found.error, "");
    }
    acme_environment_read(path_of("none"), &found);
    ck_assert_ptr_nonnull(strstr(found.error, "cannot be read (2: No such file"));
    acme_environment_read(folder, &found);
    ck_assert_ptr_nonnull(strstr(found.error, "cannot be read"));
    folder_remove();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {variables_are_read_and_exported, without_a_file_there_are_no_variables,
                                  other_lines_are_rejected_without_their_text, files_that_others_may_read_are_rejected,
                                  NULL};

    return run_tests("acme_environment", tests);
}
