#include "acme/acme.h"

#include "../runner.h"
#include "base/limits.h"

#define TEN "abcdefghi."

static const struct {
    const char *name;
    bool valid;
} names[] = {
    {"example.org", true},
    {"a", true},
    {"xn--bcher-kva.example", true},
    {"1.2.3.4", true},
    {"a-b.c0", true},
    {TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "abc", true},
    {TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "abcd", false},
    {"a23456789012345678901234567890123456789012345678901234567890123", true},
    {"a234567890123456789012345678901234567890123456789012345678901234", false},
    {"", false},
    {".", false},
    {"..", false},
    {".example.org", false},
    {"example.org.", false},
    {"a..b", false},
    {"-a.b", false},
    {"a-.b", false},
    {"*.example.org", false},
    {"~^a$", false},
    {"A.example", false},
    {"a_b.example", false},
    {"a/b", false},
    {"a b", false},
    {"b\xc3\xbc" "cher.example", false},
    {"::1", false},
};

START_TEST(names_are_checked)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_assert_msg(acme_name_valid(str_from(names[i].name)) == names[i].valid, "%s", names[i].name);
    ck_assert(!acme_name_valid((struct str){NULL, 0}));
    ck_assert(!acme_name_valid(str_of("a\0b", 3)));
}
END_TEST

START_TEST(wildcards_and_addresses_are_distinguished)
{
    static const char *const bad[] = {"", "*", "*.", "a.test", "*a.test", "*.*.test", "*..test",
                                      "*.a.test.", "x.*.test", "*.a_b"};

    ck_assert(acme_wildcard_valid(STR("*.a.test")));
    ck_assert(acme_wildcard_valid(STR("*.test")));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!acme_wildcard_valid(str_from(bad[i])), "%s", bad[i]);
    ck_assert(acme_address_valid(STR("192.0.2.1")));
    ck_assert(!acme_address_valid(STR("192.0.2.1.test")));
    ck_assert(!acme_address_valid(STR("192.0.2")));
    ck_assert(!acme_address_valid(STR("a.test")));
    ck_assert(!acme_address_valid(STR("")));
}
END_TEST

START_TEST(tokens_are_checked)
{
    char longest[LIMIT_ACME_TOKEN + 1];

    memset(longest, 'x', sizeof(longest));
    ck_assert(acme_token_valid(STR("AZaz09-_")));
    ck_assert(acme_token_valid(str_of(longest, LIMIT_ACME_TOKEN)));
    ck_assert(!acme_token_valid(str_of(longest, LIMIT_ACME_TOKEN + 1)));
    static const char *const bad[] = {"", ".", "..", ".x", "a.b", "a/b", "a b", "a%2f", "a=", "a+b", "a\n", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!acme_token_valid(str_from(bad[i])), "%s", bad[i]);
    ck_assert(!acme_token_valid(str_of("a\0", 2)));
}
END_TEST

START_TEST(authorizations_begin_with_their_token)
{
    char longest[LIMIT_ACME_AUTHORIZATION + 1];

    memset(longest, 'x', sizeof(longest));
    memcpy(longest, "token.", 6);
    ck_assert(acme_authorization_valid(STR("token.thumb-print_1"), STR("token")));
    ck_assert(acme_authorization_valid(str_of(longest, LIMIT_ACME_AUTHORIZATION), STR("token")));
    ck_assert(!acme_authorization_valid(str_of(longest, LIMIT_ACME_AUTHORIZATION + 1), STR("token")));
    static const char *const bad[] = {"", "token", "token.", ".thumb", "other.thumb", "token.thumb.more",
                                      "token.thu b", "token.thumb\n", "tokenx.thumb"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!acme_authorization_valid(str_from(bad[i]), STR("token")), "%s", bad[i]);
    ck_assert(!acme_authorization_valid(STR("..thumb"), STR(".")));
}
END_TEST

START_TEST(a_challenge_is_used_if_one_certificate_names_it)
{
    struct acme_settings settings[] = {{.challenge = ACME_HTTP_01}, {.challenge = ACME_TLS_ALPN_01}};
    struct acme_certificate items[] = {{.settings = &settings[0]}, {.settings = &settings[1]}};

    ck_assert(acme_uses_challenge(&(struct acme){.items = items, .count = 2}, ACME_TLS_ALPN_01));
    ck_assert(!acme_uses_challenge(&(struct acme){.items = items, .count = 1}, ACME_TLS_ALPN_01));
    ck_assert(acme_uses_challenge(&(struct acme){.items = items, .count = 1}, ACME_HTTP_01));
    ck_assert(!acme_uses_challenge(&(struct acme){.count = 0}, ACME_HTTP_01));
    ck_assert_str_eq(acme_challenge_types[ACME_TLS_ALPN_01], "tls-alpn-01");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {names_are_checked, wildcards_and_addresses_are_distinguished, tokens_are_checked,
                                  authorizations_begin_with_their_token,
                                  a_challenge_is_used_if_one_certificate_names_it, NULL};

    return run_tests("acme_name", tests);
}
