#include "tls_pair.h"

#include "../runner.h"

static void count_line(void *owner, enum log_level level, struct str line)
{
    (*(int *)owner)++;
}

static const struct {
    const char *list, *curve; /* NULL: the list is invalid */
} group_lists[] = {
    {"?NO-SUCH-GROUP:P-384:?X448", "secp384r1"},
    {"?P-521", "secp521r1"},
    {"NO-SUCH-GROUP:P-384", NULL},
    {"?NO-SUCH-GROUP", NULL},
};

/* "?" marks a group as optional: a library that lacks the group ignores it. */
START_TEST(unsupported_groups_may_be_optional)
{
    struct tls_settings settings = pair_settings();
    char error[512] = "";
    int lines = 0;
    struct log log = {.level = LOG_DEBUG, .sink = count_line, .owner = &lines};
    struct tls_pair pair;

    settings.curves = str_from(group_lists[_i].list);
    if (!group_lists[_i].curve) {
        ck_assert_ptr_null(tls_context_create(&settings, 1, &log, error, sizeof(error)));
        ck_assert_msg(strstr(error, "ssl_ecdh_curve"), "%s", error);
        return;
    }
    pair_open(&pair, &settings, 1);
    SSL_set1_groups_list(pair.client, "X25519:P-521:P-384");
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_msg(str_equal(tls_session_curve(pair.session), str_from(group_lists[_i].curve)), STR_FMT,
                  STR_ARG(tls_session_curve(pair.session)));
    pair_close(&pair);
}
END_TEST

/* The default list, with the same library on both sides. */
START_TEST(default_group_is_the_hybrid_one_or_x25519)
{
    bool has = tls_has_group("X25519MLKEM768");
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    ck_assert(tls_has_group("X25519") && !tls_has_group("NO-SUCH-GROUP"));
    pair_open(&pair, &settings, 1);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_msg(str_equal(tls_session_curve(pair.session), has ? STR("X25519MLKEM768") : STR("X25519")), STR_FMT,
                  STR_ARG(tls_session_curve(pair.session)));
    pair_exchange(&pair, 100);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, unsupported_groups_may_be_optional, 0, 4);
    tcase_add_test(tcase, default_group_is_the_hybrid_one_or_x25519);
}

int main(void)
{
    return run_suite("tls_groups", add_tests);
}
