#include "acme/acme_challenge.h"

#include "../runner.h"
#include "base/limits.h"
#include "made.h"

#include <errno.h>

static char text[LIMIT_ACME_AUTHORIZATION + 1];

static ssize_t read_token(const char *token)
{
    return acme_challenge_read(folder, str_from(token), text, sizeof(text));
}

START_TEST(a_challenge_is_stored_read_and_removed)
{
    struct stat state;

    folder_make();
    umask(077);
    ck_assert_int_eq(acme_challenge_store(folder, STR("token"), STR("token.thumb")), 0);
    ck_assert_int_eq(stat(path_of("token"), &state), 0);
    ck_assert_uint_eq(state.st_mode & 0777, 0644);
    ck_assert_int_eq(read_token("token"), 11);
    ck_assert(memcmp(text, "token.thumb", 11) == 0);
    ck_assert_int_eq(acme_challenge_store(folder, STR("token"), STR("token.other")), 0);
    ck_assert(file_is(path_of("token"), "token.other"));
    ck_assert_int_eq(access(path_of(".token"), F_OK), -1);
    ck_assert_int_eq(acme_challenge_remove(folder, STR("token")), 0);
    ck_assert_int_eq(acme_challenge_remove(folder, STR("token")), 0);
    ck_assert_int_eq(read_token("token"), -ENOENT);
    folder_remove();
}
END_TEST

START_TEST(invalid_tokens_reach_no_file)
{
    static const char *const bad[] = {"", ".", "..", "../x", "a/b", ".hidden"};

    folder_make();
    file_write(path_of(".hidden"), ".hidden.thumb", 0644);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(acme_challenge_store(folder, str_from(bad[i]), STR("x.y")), -EINVAL);
        ck_assert_int_eq(acme_challenge_remove(folder, str_from(bad[i])), -EINVAL);
        ck_assert_int_eq(read_token(bad[i]), -EINVAL);
    }
    ck_assert_int_eq(acme_challenge_store(folder, STR("token"), STR("other.thumb")), -EINVAL);
    ck_assert_int_eq(access(path_of(".hidden"), F_OK), 0);
    folder_remove();
}
END_TEST

START_TEST(only_key_authorizations_in_regular_files_are_read)
{
    char longer[LIMIT_ACME_AUTHORIZATION + 10];

    folder_make();
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    memcpy(longer, "long.", 5);
    file_write(path_of("long"), longer, 0644);
    file_write(path_of("secret"), "a private key", 0644);
    file_write(path_of("empty"), "", 0644);
    ck_assert_int_eq(symlink(path_of("secret"), path_of("link")), 0);
    ck_assert_int_eq(mkdir(path_of("folder"), 0700), 0);
    ck_assert_int_eq(mkfifo(path_of("fifo"), 0600), 0);
    ck_assert_int_eq(read_token("long"), -EINVAL);
    ck_assert_int_eq(read_token("secret"), -EINVAL);
    ck_assert_int_eq(read_token("empty"), -EINVAL);
    ck_assert_int_eq(read_token("link"), -ELOOP);
    ck_assert_int_lt(read_token("folder"), 0);
    ck_assert_int_eq(read_token("fifo"), -EINVAL);
    folder_remove();
}
END_TEST

START_TEST(missing_folder_is_an_error)
{
    ck_assert_int_eq(acme_challenge_store("/proc/none", STR("t"), STR("t.x")), -ENOENT);
    ck_assert_int_eq(acme_challenge_remove("/proc/none", STR("t")), -ENOENT);
    ck_assert_int_eq(acme_challenge_read("/proc/none", STR("t"), text, sizeof(text)), -ENOENT);
    acme_challenge_clear("/proc/none");
    ck_assert_int_lt(acme_challenge_store("/proc/self", STR("t"), STR("t.x")), 0);
}
END_TEST

START_TEST(all_challenges_are_removed)
{
    folder_make();
    ck_assert_int_eq(acme_challenge_store(folder, STR("one"), STR("one.x")), 0);
    ck_assert_int_eq(acme_challenge_store(folder, STR("two"), STR("two.x")), 0);
    file_write(path_of(".three"), "interrupted", 0644);
    acme_challenge_clear(folder);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_challenge_is_stored_read_and_removed,
                                         invalid_tokens_reach_no_file,
                                         only_key_authorizations_in_regular_files_are_read,
                                         missing_folder_is_an_error,
                                         all_challenges_are_removed,
                                         NULL};

    return run_tests("acme_challenge", tests);
}
