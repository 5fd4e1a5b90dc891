#include "acme/acme_tls_alpn.h"

#include "../runner.h"
#include "acme/acme_challenge.h"
#include "made.h"

#include <errno.h>
#include <openssl/sha.h>

#define DIGEST "LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ" /* of "hello" */

static struct acme_tls_alpn found;

static int read_name(const char *name)
{
    return acme_tls_alpn_read(folder, str_from(name), &found);
}

START_TEST(a_challenge_is_stored_read_and_removed)
{
    unsigned char digest[ACME_DIGEST];
    struct stat state;

    folder_make();
    umask(077);
    ck_assert_int_eq(read_name("a.test"), -ENOENT);
    ck_assert_int_eq(acme_tls_alpn_store(folder, STR("a.test"), STR(DIGEST)), 0);
    ck_assert_int_eq(stat(path_of("a.test."), &state), 0);
    ck_assert_uint_eq(state.st_mode & 0777, 0644);
    ck_assert_int_eq(read_name("A.tesT"), 0);
    ck_assert_str_eq(found.identifier, "a.test");
    SHA256((const unsigned char *)"hello", 5, digest);
    ck_assert(memcmp(found.digest, digest, ACME_DIGEST) == 0);
    ck_assert_int_eq(read_name("b.test"), -ENOENT);
    ck_assert_int_eq(acme_tls_alpn_remove(folder, STR("a.test")), 0);
    ck_assert_int_eq(acme_tls_alpn_remove(folder, STR("a.test")), 0);
    ck_assert_int_eq(read_name("a.test"), -ENOENT);
    /* A name without a dot is no token of http-01. */
    ck_assert_int_eq(acme_tls_alpn_store(folder, STR("localhost"), STR(DIGEST)), 0);
    ck_assert_int_eq(access(path_of("localhost"), F_OK), -1);
    acme_challenge_clear(folder);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(addresses_have_reverse_names)
{
    static const struct {
        const char *address, *name;
    } rows[] = {
        {"192.0.2.1", "1.2.0.192.in-addr.arpa"},
        {"2001:db8::1", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"},
    };

    folder_make();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_int_eq(acme_tls_alpn_store(folder, str_from(rows[i].address), STR(DIGEST)), 0);
        ck_assert_int_eq(read_name(rows[i].name), 0);
        ck_assert_str_eq(found.identifier, rows[i].address);
        ck_assert_int_lt(read_name(rows[i].address), 0);
        ck_assert_int_eq(acme_tls_alpn_remove(folder, str_from(rows[i].address)), 0);
        ck_assert_int_eq(read_name(rows[i].name), -ENOENT);
    }
    folder_remove();
}
END_TEST

START_TEST(invalid_names_and_digests_reach_no_file)
{
    static const char *const names[] = {"", ".", "..", "../x", "a/b", "a.test.", ".a", "*.a.test",
                                        "a_b.test", "a b", "x\n"};
    static const char *const digests[] = {"", "token.thumb", DIGEST "=", DIGEST "A", "LPJNul",
                                          "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ"};
    char longest[LIMIT_ACME_NAME + 2];

    folder_make();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_int_eq(acme_tls_alpn_store(folder, str_from(names[i]), STR(DIGEST)), -EINVAL);
        ck_assert_int_eq(acme_tls_alpn_remove(folder, str_from(names[i])), -EINVAL);
        ck_assert_int_eq(read_name(names[i]), -EINVAL);
    }
    for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++)
        ck_assert_int_eq(acme_tls_alpn_store(folder, STR("a.test"), str_from(digests[i])), -EINVAL);
    ck_assert_int_eq(rmdir(folder), 0);
    folder_make();
    memset(longest, 'x', sizeof(longest));
    for (size_t i = 50; i < sizeof(longest); i += 50)
        longest[i] = '.';
    ck_assert_int_eq(acme_tls_alpn_store(folder, str_of(longest, LIMIT_ACME_NAME), STR(DIGEST)), 0);
    ck_assert_int_eq(acme_tls_alpn_read(folder, str_of(longest, LIMIT_ACME_NAME), &found), 0);
    ck_assert_uint_eq(strlen(found.identifier), LIMIT_ACME_NAME);
    ck_assert_int_eq(acme_tls_alpn_store(folder, str_of(longest, LIMIT_ACME_NAME + 1), STR(DIGEST)), -EINVAL);
    ck_assert_int_eq(acme_tls_alpn_read(folder, str_of(longest, LIMIT_ACME_NAME + 1), &found), -EINVAL);
    folder_remove();
}
END_TEST

START_TEST(other_files_are_no_challenges)
{
    static const char *const texts[] = {"", "a.test", "a.test " DIGEST, "b.test " DIGEST "\n", "a.test \n",
                                        "a.test " DIGEST "\n\n", " " DIGEST "\n", "a.test " DIGEST " more\n"};
    char longer[1024];

    folder_make();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        file_write(path_of("a.test."), texts[i], 0644);
        ck_assert_msg(read_name("a.test") == -EINVAL, "%s", texts[i]);
    }
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    file_write(path_of("a.test."), longer, 0644);
    ck_assert_int_eq(read_name("a.test"), -EINVAL);
    ck_assert_int_eq(unlink(path_of("a.test.")), 0);
    file_write(path_of("secret"), "a.test " DIGEST "\n", 0644);
    ck_assert_int_eq(symlink(path_of("secret"), path_of("a.test.")), 0);
    ck_assert_int_eq(read_name("a.test"), -ELOOP);
    ck_assert_int_eq(acme_tls_alpn_read("/proc/none", STR("a.test"), &found), -ENOENT);
    folder_remove();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_challenge_is_stored_read_and_removed, addresses_have_reverse_names,
                                  invalid_names_and_digests_reach_no_file, other_files_are_no_challenges, NULL};

    return run_tests("acme_tls_alpn", tests);
}
