#include "../runner.h"
#include "order.h"

#include <errno.h>

/* A client that records its arguments, and copies a certificate if it is to issue one. */
#define CLIENT RECORDS "case \"$*\" in *' issue '*) ;; *) exit ${NEW_STATUS-0};; esac\n"
#define ISSUES                                                                                       \
    CLIENT "mkdir -p a.test private/a.test\n[ -e private/a.test/key.pem ] && exit 9\n"               \
           "cp $HOME/../../chain a.test/cert.pem; cp $HOME/../../key private/a.test/key.pem\n"

static void set_up(const char *script)
{
    order_set_up(ACME_UACME, "uacme", script);
}

#define NEW   "-v -a https://ca.test/dir -c CONF -y new admin@a.test \n"
#define ISSUE "-v -a https://ca.test/dir -c CONF -y -t RSA -b 4096 -f -o -h /the/hook issue a.test b.test \n"

START_TEST(an_account_is_registered_once)
{
    struct acme_validity validity;

    set_up(ISSUES);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    ck_assert_str_eq(error, "");
    check_arguments(NEW ISSUE);
    ck_assert_int_eq(acme_file_read(file, &certificate, &validity), 0);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    check_arguments(NEW ISSUE ISSUE);
    /* Another authority has another account. */
    order.directory = "https://other.test/dir";
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    check_arguments(NEW ISSUE ISSUE "-v -a https://other.test/dir -c CONF -y new admin@a.test \n"
                                    "-v -a https://other.test/dir -c CONF -y -t RSA -b 4096 -f -o -h /the/hook issue "
                                    "a.test b.test \n");
    order_tear_down();
}
END_TEST

START_TEST(an_external_account_is_bound)
{
    set_up(ISSUES);
    settings.eab_key_id = STR("kid-1");
    settings.eab_key = STR("c2VjcmV0");
    settings.email = STR("");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    check_arguments("-v -a https://ca.test/dir -c CONF -y -e kid-1:c2VjcmV0 new \n" ISSUE);
    order_tear_down();
}
END_TEST

START_TEST(a_lost_account_is_registered_again)
{
    set_up(CLIENT "echo 'uacme: the server reported the following error:'\n"
                  "echo '  \"detail\": \"unknown account\",'\nexit 2\n");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "unknown account");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    check_arguments(NEW ISSUE NEW ISSUE);
    order_tear_down();
}
END_TEST

START_TEST(failed_registration_is_reported)
{
    set_up(CLIENT);
    setenv("NEW_STATUS", "2", 1);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    check_arguments(NEW);
    file_write(path_of("uacme"), "#!/bin/sh\necho 'uacme: Account already exists at x'\nexit 2\n", 0755);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "uacme: Account already exists at x"); /* of the second run */
    order_tear_down();
}
END_TEST

START_TEST(faults_of_the_client_are_named)
{
    set_up(ISSUES);
    settings.timeout_ms = 20000;
    make_certificate(path_of("chain"), path_of("key"), "DNS:a.test", 0, 1000);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client wrote a certificate without its key or without all names");
    file_write(path_of("uacme"), CLIENT "exit 0\n", 0755);
    ck_assert_int_eq(access(file, F_OK), -1);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    file_write(path_of("uacme"), CLIENT "kill -9 $$\n", 0755);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client was killed");
    settings.timeout_ms = 200;
    file_write(path_of("uacme"), CLIENT "exec sleep 600\n", 0755);
    unlink(path_of("clients"));
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client did not end within acme.timeout, and was killed");
    ck_assert_int_eq(unlink(path_of("uacme")), 0);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client uacme is not installed: apt-get install uacme");
    acme.state = STR("/proc/none");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error, "/proc/none/clients/uacme-"));
    order_tear_down();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {an_account_is_registered_once, an_external_account_is_bound,
                                         a_lost_account_is_registered_again, failed_registration_is_reported,
                                         faults_of_the_client_are_named, NULL};

    return run_tests("acme_uacme", tests);
}
