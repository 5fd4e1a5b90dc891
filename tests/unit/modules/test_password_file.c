/* Password files: supported and unsupported kinds of hashes, and malformed lines. */
#include "base/limits.h"
#include "../../../modules/auth_basic/password_file.h"
#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char users[] =
    "# a comment: with a colon\n"
    "\n"
    "bcrypt:$2y$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy\n"
    "sha256:$5$rounds=1000$saltsalt$nKsyTQBmKz4GdCft0Sv/FbzLiu0y3wFdEXOzudLQLJ5\r\n"
    "sha512:$6$rounds=1000$saltsalt$/IiX/CoEcxCZ9SksEXnbjfCT1LGvD4z5OpJkaFYl/"
    "T37OAwuKZ8I8BixDhruhPLkw6lS7dw/6wQWgQnGo7lLg/:of the house\n"
    "yescrypt:$y$j7T$abcdefghijklmnop$tuhKAXxK3ivTx8JKk9zEG0FkymOYgcnmkCtX1ub3bm2\n"
    "gost:$gy$j7T$abcdefghijklmnop$XFTt9r.LCCyjttOM2cnrGs353aysqwrz8hUsP.D4Wq9\n"
    "bcrypt:$6$never$looked-at\n"
    "apr1:$apr1$saltsalt$HIDXe7D36X22w1CH4M1cQ.\n"
    "md5:$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/\n"
    "sha1:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"
    "des:rqXexS6ZhobKA\n"
    "empty:\n"
    "broken:$2y$04$short\n"
    "star:*0\n"
    "costly:$2y$31$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy\n"
    "rounds:$6$rounds=999999999$saltsalt$x\n"
    "no line at all\n"
    "last:$5$rounds=1000$saltsalt$mqohPHfoxprMSaaCrQmZlYjbqp.odd4XIzggka6JeR5";

static char path[64];

static void write_file(const char *text, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, length), (ssize_t)length);
    close(fd);
}

static void setup(void)
{
    snprintf(path, sizeof(path), "/tmp/sluice-users-%ld", (long)getpid());
    write_file(users, sizeof(users) - 1);
}

static void teardown(void)
{
    unlink(path);
}

static struct password_check verify_password(const char *user, const char *password)
{
    struct password_check question = {.path = path, .user = str_from(user), .password = password};

    ck_assert_int_eq(password_verify(&question), 0);
    return question;
}

START_TEST(each_hash_scheme)
{
    static const char *const good[] = {"bcrypt", "sha256", "sha512", "yescrypt", "gost", "apr1"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_assert_msg(verify_password(good[i], "open sesame").result == PASSWORD_GOOD, "%s", good[i]);
        ck_assert_msg(verify_password(good[i], "open sesamf").result == PASSWORD_BAD, "%s", good[i]);
        ck_assert_int_eq(verify_password(good[i], "").result, PASSWORD_BAD);
    }
    ck_assert_int_eq(verify_password("last", "gr\303\274n").result, PASSWORD_GOOD);
    ck_assert_int_eq(verify_password("broken", "open sesame").result, PASSWORD_BAD);
}
END_TEST

START_TEST(user_without_a_line_is_unknown)
{
    static const char *const names[] = {"nobody", "", "Bcrypt", "bcrypt ", "# a comment", "no line at all"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_assert_msg(verify_password(names[i], "open sesame").result == PASSWORD_UNKNOWN_USER, "%s", names[i]);
    write_file("", 0);
    ck_assert_int_eq(verify_password("bcrypt", "open sesame").result, PASSWORD_UNKNOWN_USER);
}
END_TEST

START_TEST(weak_hash_schemes)
{
    static const struct {
        const char *user, *scheme;
        unsigned line;
    } weak[] = {{"md5", "$1$", 10}, {"sha1", "{SHA}", 11}, {"des", "DES or plain te", 12},
                {"empty", "DES or plain te", 13}, {"star", "DES or plain te", 15}};
    char user[32], scheme[16];
    unsigned line = 0;

    for (size_t i = 0; i < sizeof(weak) / sizeof(weak[0]); i++) {
        struct password_check question = verify_password(weak[i].user, "open sesame");

        ck_assert_int_eq(question.result, PASSWORD_WEAK);
        ck_assert_str_eq(question.scheme, weak[i].scheme);
        ck_assert_uint_eq(question.line, weak[i].line);
    }
    ck_assert_int_eq(verify_password("costly", "open sesame").result, PASSWORD_COSTLY);
    ck_assert_int_eq(verify_password("rounds", "open sesame").result, PASSWORD_COSTLY);
    ck_assert_int_eq(password_file_check(path, &line, user, sizeof(user), scheme, sizeof(scheme)), 1);
    ck_assert_str_eq(user, "md5");
    ck_assert_uint_eq(line, 10);
    write_file(users, 200);
    ck_assert_int_eq(password_file_check(path, &line, user, sizeof(user), scheme, sizeof(scheme)), 0);
}
END_TEST

/* Wraps crypt_rn (ld --wrap) and counts its calls. */
static unsigned hashed;

char *__real_crypt_rn(const char *password, const char *setting, void *memory, int size);
char *__wrap_crypt_rn(const char *password, const char *setting, void *memory, int size);

char *__wrap_crypt_rn(const char *password, const char *setting, void *memory, int size)
{
    hashed++;
    return __real_crypt_rn(password, setting, memory, size);
}

/* A check without a hash would take less time, which would reveal whether a user exists. */
START_TEST(one_hash_for_every_user)
{
    static const char *const names[] = {"bcrypt", "nobody", "md5", "empty", "star", "costly", "rounds", "broken"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        hashed = 0;
        (void)verify_password(names[i], "open sesame");
        ck_assert_msg(hashed == 1, "%s: %u", names[i], hashed);
    }
}
END_TEST

START_TEST(known_password_is_checked_after_a_change)
{
    struct password_check question = verify_password("sha256", "open sesame");

    question.known = true;
    question.password = "not looked at";
    ck_assert_int_eq(password_verify(&question), 0);
    ck_assert_int_eq(question.result, PASSWORD_GOOD);
    write_file(users, sizeof(users) - 2);
    ck_assert_int_eq(password_verify(&question), 0);
    ck_assert_int_eq(question.result, PASSWORD_BAD);
}
END_TEST

START_TEST(unreadable_large_and_special_files_are_rejected)
{
    struct password_check question = {.path = "/nonexistent/users", .user = STR("a"), .password = "b"};

    ck_assert_int_eq(password_verify(&question), -ENOENT);
    question.path = "/tmp";
    ck_assert_int_eq(password_verify(&question), -EINVAL);
    question.path = path;
    ck_assert_int_eq(truncate(path, LIMIT_PASSWORD_FILE + 1), 0);
    ck_assert_int_eq(password_verify(&question), -EFBIG);
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* the open does not wait for a writer */
    ck_assert_int_eq(password_verify(&question), -EINVAL);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, each_hash_scheme);
    tcase_add_test(tcase, user_without_a_line_is_unknown);
    tcase_add_test(tcase, weak_hash_schemes);
    tcase_add_test(tcase, one_hash_for_every_user);
    tcase_add_test(tcase, known_password_is_checked_after_a_change);
    tcase_add_test(tcase, unreadable_large_and_special_files_are_rejected);
}

int main(void)
{
    return run_suite("password_file", add_tests);
}
