#include "../runner.h"
#include "order.h"

#include <errno.h>

START_TEST(each_client_has_its_name)
{
    static const struct {
        int client;
        const char *missing;
    } rows[] = {
        {ACME_UACME, "the client uacme is not installed: apt-get install uacme"},
        {ACME_LEGO, "the client lego is not installed: apt-get install lego"},
    };

    order_set_up(ACME_UACME, "other", RECORDS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        settings.client = rows[i].client;
        ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
        ck_assert_str_eq(error, rows[i].missing);
    }
    order_tear_down();
}
END_TEST

START_TEST(a_client_may_not_support_the_window)
{
    order_set_up(ACME_UACME, "uacme", RECORDS "echo --ari-disable\n");
    ck_assert(!acme_order_supports_window(&order));
    ck_assert_int_eq(access(path_of("arguments"), F_OK), -1);
    settings.client = ACME_LEGO;
    ck_assert(!acme_order_supports_window(&order)); /* it is not installed */
    order_tear_down();
}
END_TEST

START_TEST(without_its_environment_no_client_runs)
{
    const struct acme_environment bad = {.error = "acme.environment: the cause"};

    order_set_up(ACME_LEGO, "lego", RECORDS);
    order.environment = &bad;
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "acme.environment: the cause");
    ck_assert_int_eq(access(path_of("arguments"), F_OK), -1);
    order_tear_down();
}
END_TEST

START_TEST(a_certificate_that_cannot_be_stored_is_reported)
{
    order_set_up(ACME_LEGO, "lego",
                 RECORDS "mkdir -p $2/certificates\ncp $HOME/../../chain $2/certificates/a.test.crt\n"
                         "cp $HOME/../../key $2/certificates/a.test.key\n");
    certificate.file = STR("/proc/none/a.test.pem");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error, "/proc/none/a.test.pem cannot be written"));
    certificate.file = str_from(file);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    ck_assert_int_eq(access(file, F_OK), 0);
    order_tear_down();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {each_client_has_its_name, a_client_may_not_support_the_window,
                                  without_its_environment_no_client_runs,
                                  a_certificate_that_cannot_be_stored_is_reported, NULL};

    return run_tests("acme_order", tests);
}
