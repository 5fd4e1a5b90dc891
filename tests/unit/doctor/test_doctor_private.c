#include "doctor/doctor_private.h"

#include "../runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct private_words words;
static struct buffer out;

static const char *replace(const char *text)
{
    out.length = 0;
    ck_assert_int_eq(private_words_replace(&words, str_from(text), &out), 0);
    ck_assert_int_eq(buffer_append(&out, str_of("", 1)), 0);
    return out.data;
}

START_TEST(whole_words_are_replaced)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"nothing", "nothing"},
        {"ada", "[user]"},
        {"ada, (ada) ada", "[user], ([user]) [user]"},
        {"adam bada ada1 1ada ada_ -ada", "adam bada ada1 1ada [user]_ -[user]"},
        {"Ada ADA", "Ada ADA"},
        {"/home/ada/file and /home/adam", "[home]/file and /home/adam"},
        {"/home/ada", "[home]"},
        {"6.1.0-tower tower.example.org", "6.1.0-[host] [host]"},
        {"eth0: off, eth0.7: on", "[device 1]: off, [device 2]: on"},
        {"2001:db8::7 2001:db8::71", "[address] 2001:db8::71"},
    };

    private_words_add(&words, "tower.example.org", "[host]");
    private_words_add(&words, "2001:db8::7", "[address]");
    private_words_add(&words, "/home/ada", "[home]");
    private_words_add(&words, "eth0.7", "[device 2]");
    private_words_add(&words, "tower", "[host]");
    private_words_add(&words, "eth0", "[device 1]");
    private_words_add(&words, "ada", "[user]");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_str_eq(replace(cases[i].text), cases[i].expected);
    buffer_finish(&out);
}
END_TEST

START_TEST(words_are_limited)
{
    char text[512];

    private_words_add(&words, NULL, "[x]");
    private_words_add(&words, "", "[x]");
    private_words_add(&words, "x", "[x]");
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    private_words_add(&words, text, "[x]");
    ck_assert_uint_eq(words.count, 0);
    private_words_add(&words, "xy", "[x]");
    private_words_add(&words, "xy", "[y]");
    ck_assert_uint_eq(words.count, 1);
    for (int i = 0; i < 2 * PRIVATE_WORDS; i++) {
        snprintf(text, sizeof(text), "word%d", i);
        private_words_add(&words, text, "[x]");
    }
    ck_assert_uint_eq(words.count, PRIVATE_WORDS);
}
END_TEST

static bool has(const char *text)
{
    for (unsigned i = 0; i < words.count; i++) {
        if (strcmp(words.words[i].text, text) == 0)
            return true;
    }
    return false;
}

/* SUDO_USER and HOME of the caller, but no system accounts. The longest word is the first. */
START_TEST(words_of_this_machine)
{
    char host[256] = "";

    ck_assert_int_eq(setenv("HOME", "/srv/homes/grace", 1), 0);
    ck_assert_int_eq(setenv("SUDO_USER", "grace", 1), 0);
    ck_assert_int_eq(setenv("USER", "daemon", 1), 0);
    private_words_collect(&words);
    ck_assert(has("/srv/homes/grace") && has("grace"));
    ck_assert(!has("daemon") && !has("root") && !has("/root") && !has("lo") && !has("127.0.0.1") && !has("localhost"));
    ck_assert(!has(".") && !has(".."));
    ck_assert_int_eq(gethostname(host, sizeof(host) - 1), 0);
    ck_assert(strlen(host) < 2 || strcmp(host, "localhost") == 0 || has(host));
    for (unsigned i = 1; i < words.count; i++)
        ck_assert_uint_ge(strlen(words.words[i - 1].text), strlen(words.words[i].text));
}
END_TEST

int main(void)
{
    return run_tests("doctor_private", (const TTest *const[]){whole_words_are_replaced, words_are_limited,
                                                              words_of_this_machine, NULL});
}
