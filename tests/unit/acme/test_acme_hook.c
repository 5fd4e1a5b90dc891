#include "acme/acme_hook.h"

#include "../runner.h"
#include "made.h"

#define DIGEST "LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ" /* of "hello" */

static int hook(const char *method, const char *type, const char *token, const char *authorization)
{
    char *arguments[] = {(char[]){"hook"}, (char *)(uintptr_t)method, (char *)(uintptr_t)type, (char[]){"a.test"},
                         (char *)(uintptr_t)token, (char *)(uintptr_t)authorization, NULL};

    return acme_hook(6, arguments);
}

START_TEST(the_hook_follows_the_client)
{
    char word[] = "begin", *few[] = {word, word, word, word, word, NULL};

    folder_make();
    unsetenv(ACME_CHALLENGES);
    ck_assert_int_eq(hook("begin", "http-01", "token", "token.thumb"), 1);
    setenv(ACME_CHALLENGES, folder, 1);
    ck_assert_int_eq(acme_hook(5, few), 1);
    ck_assert_int_eq(hook("begin", "dns-01", "token", "token.thumb"), 1);
    ck_assert_int_eq(hook("begin", "tls-alpn-01", "token", DIGEST), 1);
    ck_assert_int_eq(hook("again", "http-01", "token", "token.thumb"), 1);
    ck_assert_int_eq(hook("begin", "http-01", "../token", "../token.thumb"), 1);
    ck_assert_int_eq(hook("begin", "http-01", "token", "token.thumb"), 0);
    ck_assert(file_is(path_of("token"), "token.thumb"));
    ck_assert_int_eq(hook("done", "http-01", "token", "token.thumb"), 0);
    ck_assert_int_eq(access(path_of("token"), F_OK), -1);
    ck_assert_int_eq(hook("failed", "http-01", "token", "token.thumb"), 0);
    setenv(ACME_CHALLENGES, "/proc/none", 1);
    ck_assert_int_eq(hook("begin", "http-01", "token", "token.thumb"), 1);
    folder_remove();
}
END_TEST

START_TEST(the_hook_accepts_one_type_of_challenge)
{
    folder_make();
    setenv(ACME_CHALLENGES, folder, 1);
    setenv(ACME_CHALLENGE_TYPE, "tls-alpn-01", 1);
    ck_assert_int_eq(hook("begin", "http-01", "token", "token.thumb"), 1);
    ck_assert_int_eq(hook("begin", "tls-alpn-01", "token", "token.thumb"), 1);
    ck_assert_int_eq(hook("begin", "tls-alpn-01", "token", DIGEST), 0);
    ck_assert(file_is(path_of("a.test."), "a.test " DIGEST "\n"));
    ck_assert_int_eq(access(path_of("token"), F_OK), -1);
    ck_assert_int_eq(hook("failed", "tls-alpn-01", "token", DIGEST), 0);
    ck_assert_int_eq(access(path_of("a.test."), F_OK), -1);
    setenv(ACME_CHALLENGE_TYPE, "http-01", 1);
    ck_assert_int_eq(hook("begin", "http-01", "token", "token.thumb"), 0);
    unsetenv(ACME_CHALLENGE_TYPE);
    folder_remove();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_hook_follows_the_client, the_hook_accepts_one_type_of_challenge, NULL};

    return run_tests("acme_hook", tests);
}
