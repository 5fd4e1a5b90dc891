/* $apr1$ hashes as `openssl passwd -apr1 -salt SALT` and `htpasswd -nbm` write them, and malformed hashes. */
#include "base/limits.h"
#include "../../../modules/auth_basic/apr1.h"
#include "../runner.h"

#include <string.h>

#define X17  "xxxxxxxxxxxxxxxxx"
#define X255 X17 X17 X17 X17 X17 X17 X17 X17 X17 X17 X17 X17 X17 X17 X17

static const struct {
    const char *password, *hash;
} vectors[] = {
    {"open sesame", "$apr1$saltsalt$HIDXe7D36X22w1CH4M1cQ."},
    {"", "$apr1$xxxxxxxx$AL/DOdqyMUurcg0cPNW/P1"},
    {"a", "$apr1$xxxxxxxx$YMs3Jkp9Zx7lSxpQ9nJyH1"},
    {"0123456789abcdef", "$apr1$xxxxxxxx$/m5gQ.Z7rFSjuVJjW6J4z."},
    {"0123456789abcdefg", "$apr1$xxxxxxxx$EGEc621IPtgnR82oItkJB1"},
    {"gr\303\274n", "$apr1$xxxxxxxx$HkXITOGB4K1nIGMVljLfd."},
    {"a long password, longer than two blocks of MD5 together", "$apr1$ab$pMl8ALjxkkTw3g52LHwr2/"},
    {"open sesame", "$apr1$$5fi7hpdqSYa5iVf6HpXSj."},
    {X255, "$apr1$12345678$5kn.9avmlofnMXk2XzMW10"},
    {"open sesame", "$apr1$wjftKpe/$xN5.8OhjwSSEYeHOg/uoB."},
    {"a", "$apr1$zfXTs.hu$4MVRm2l431Ty5oQ8WABci."},
    {X255, "$apr1$Fg6.SRRj$wDXwd.aMoarsmRandvspl1"},
};

START_TEST(correct_password_matches_its_hash)
{
    ck_assert_msg(apr1_matches(vectors[_i].password, str_from(vectors[_i].hash)), "%s", vectors[_i].hash);
}
END_TEST

START_TEST(wrong_password_matches_no_hash)
{
    char wrong[300] = "";

    strcpy(wrong, vectors[_i].password);
    strcat(wrong, "x");
    ck_assert(!apr1_matches(wrong, str_from(vectors[_i].hash)));
    wrong[0] ^= 1;
    ck_assert(!apr1_matches(wrong, str_from(vectors[_i].hash)));
    ck_assert(!apr1_matches("other", str_from(vectors[_i].hash)));
}
END_TEST

/* The hash of "open sesame", each with one mistake. */
static const char *const malformed[] = {
    "",
    "$",
    "$apr1",
    "$apr1$",
    "$apr1$$",
    "$apr1$saltsalt",
    "$apr1$saltsalt$",
    "$apr1$saltsalt$HIDXe7D36X22w1CH4M1cQ",
    "$apr1$saltsalt$HIDXe7D36X22w1CH4M1cQ..",
    "$apr1$saltsalt$HIDXe7D36X22w1CH4M1cQ/",
    "$apr1$saltsalt$IIDXe7D36X22w1CH4M1cQ.",
    "$apr1$saltsalt$HIDXe7D36X22w1CH4M1cQ.$",
    "$apr1$saltsaltx$HIDXe7D36X22w1CH4M1cQ.",
    "$apr1$saltsal$HIDXe7D36X22w1CH4M1cQ.",
    "$apr1$saltsalt$$HIDXe7D36X22w1CH4M1cQ.",
    "$apr1$saltsaltHIDXe7D36X22w1CH4M1cQ.",
    "$1$saltsalt$HIDXe7D36X22w1CH4M1cQ.",
    "apr1$saltsalt$HIDXe7D36X22w1CH4M1cQ.",
};

START_TEST(malformed_hash_matches_no_password)
{
    ck_assert(!apr1_matches("open sesame", str_from(malformed[_i])));
    ck_assert(!apr1_matches("", str_from(malformed[_i])));
}
END_TEST

/* Both hashes are of the whole password; openssl and htpasswd truncate passwords to 255 bytes. */
START_TEST(password_length_is_limited)
{
    const struct str hash = STR("$apr1$saltsalt$Z6NmT.Up8mvPsyZ/OOOFJ1");
    char password[LIMIT_LOGIN_TEXT + 1];

    memset(password, 'x', sizeof(password));
    password[LIMIT_LOGIN_TEXT - 1] = '\0';
    ck_assert(apr1_matches(password, hash));
    password[LIMIT_LOGIN_TEXT - 1] = 'x';
    password[LIMIT_LOGIN_TEXT] = '\0';
    ck_assert(!apr1_matches(password, STR("$apr1$saltsalt$6mtWE1BoXKayR8VG98Blt1")));
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, correct_password_matches_its_hash, 0, COUNT(vectors));
    tcase_add_loop_test(tcase, wrong_password_matches_no_hash, 0, COUNT(vectors));
    tcase_add_loop_test(tcase, malformed_hash_matches_no_password, 0, COUNT(malformed));
    tcase_add_test(tcase, password_length_is_limited);
}

int main(void)
{
    return run_suite("apr1", add_tests);
}
