#include "../runner.h"
#include "order.h"

#include <errno.h>

/* Copies a certificate; the folder is the argument after --path. */
#define ISSUES                                                                                                        \
    RECORDS "mkdir -p $2/certificates\ncp $HOME/../../chain $2/certificates/${NAME-a.test}.crt\n"                    \
            "cp $HOME/../../key $2/certificates/${NAME-a.test}.key\n"
#define COMMON "--path CONF --server https://ca.test/dir --accept-tos --email admin@a.test --key-type rsa4096 "
#define HTTP   COMMON "--http --http.webroot CONF/webroot --domains a.test --domains b.test run \n"

START_TEST(a_certificate_is_requested_by_http_01)
{
    struct acme_validity validity;
    char command[256];

    order_set_up(ACME_LEGO, "lego",
                 ISSUES "mkdir -p $2/accounts/ca; echo key >$2/accounts/ca/key\n"
                        "echo token.thumb >$2/webroot/.well-known/acme-challenge/token\numask >>$2/../../umask\n");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    ck_assert_str_eq(error, "");
    check_arguments(HTTP);
    ck_assert_int_eq(acme_file_read(file, &certificate, &validity), 0);
    ck_assert(file_is(path_of("challenges/token"), "token.thumb\n"));
    ck_assert(file_is(path_of("umask"), "0022\n"));
    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(command, sizeof(command), "[ \"$(stat -c %%a %s/clients/lego-*/accounts/ca/key)\" = 600 ]", folder);
    ck_assert_int_eq(system(command), 0);
    setenv("PATH", folder, 1);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    check_arguments(HTTP HTTP);
    order_tear_down();
}
END_TEST

START_TEST(the_web_folder_leads_to_the_challenges)
{
    char link[PATH_MAX];
    FILE *stream;

    order_set_up(ACME_LEGO, "lego", ISSUES);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(link, sizeof(link), "cd %s/clients/lego-*/webroot/.well-known && ln -sfn /elsewhere acme-challenge",
             folder);
    ck_assert_int_eq(system(link), 0);
    setenv("PATH", folder, 1);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(link, sizeof(link), "readlink %s/clients/lego-*/webroot/.well-known/acme-challenge", folder);
    stream = popen(link, "re");
    ck_assert_ptr_nonnull(fgets(link, sizeof(link), stream));
    pclose(stream);
    link[strcspn(link, "\n")] = '\0';
    ck_assert_str_eq(link, challenges);
    order_tear_down();
}
END_TEST

START_TEST(a_wildcard_is_requested_by_dns_01)
{
    struct str wild[] = {{"*.a.test", 8}, {"a.test", 6}};
    struct str resolvers[] = {{"192.0.2.53", 10}, {"[2001:db8::53]:53", 17}};
    struct acme_environment environment = {.text = (char[]){"NAME=_.a.test"}, .length = 14};

    order_set_up(ACME_LEGO, "lego", ISSUES);
    make_certificate(path_of("chain"), path_of("key"), "DNS:*.a.test,DNS:a.test", 0, 1000);
    settings.challenge = ACME_DNS_01;
    settings.dns = STR("exec");
    settings.key_type = ACME_EC256;
    certificate.name = wild[0];
    certificate.names = wild;
    order.environment = &environment;
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    settings.dns_propagation = false;
    settings.dns_resolvers = (struct conf_words){.items = resolvers, .count = 2};
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
#define DNS "--path CONF --server https://ca.test/dir --accept-tos --email admin@a.test --key-type ec256 --dns exec "
    check_arguments(DNS "--domains *.a.test --domains a.test run \n" DNS "--dns.disable-cp --dns.resolvers 192.0.2.53 "
                        "--dns.resolvers [2001:db8::53]:53 --domains *.a.test --domains a.test run \n");
    order_tear_down();
}
END_TEST

START_TEST(an_external_account_is_bound)
{
    order_set_up(ACME_LEGO, "lego", ISSUES);
    settings.eab_key_id = STR("kid-1");
    settings.eab_key = STR("c2VjcmV0MQ==");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    check_arguments(COMMON "--eab --kid kid-1 --hmac c2VjcmV0MQ --http --http.webroot CONF/webroot "
                           "--domains a.test --domains b.test run \n");
    order_tear_down();
}
END_TEST

START_TEST(a_deleted_account_is_forgotten)
{
    order_set_up(ACME_LEGO, "lego",
                 RECORDS "[ -e $2/accounts ] && echo present >>$2/../../arguments\nmkdir -p $2/accounts/ca/admin/keys\n"
                         "echo x >$2/accounts/ca/admin/account.json\necho 'Could not obtain certificates:'\n"
                         "echo \"acme: error: 400 :: urn:ietf:params:acme:error:${CAUSE-malformed} :: the detail\"\n"
                         "exit 1\n");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "acme: error: 400 :: urn:ietf:params:acme:error:malformed :: the detail");
    setenv("CAUSE", "accountDoesNotExist", 1);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    check_arguments(HTTP HTTP "present\n");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    check_arguments(HTTP HTTP "present\n" HTTP);
    unsetenv("CAUSE");
    order_tear_down();
}
END_TEST

START_TEST(faults_are_named)
{
    order_set_up(ACME_LEGO, "lego", RECORDS);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL); /* it writes no certificate */
    ck_assert_int_eq(access(file, F_OK), -1);
    ck_assert_int_eq(unlink(path_of("lego")), 0);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client lego is not installed: apt-get install lego");
    acme.state = STR("/proc/none");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error, "/proc/none/clients/lego-"));
    order_tear_down();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_certificate_is_requested_by_http_01, the_web_folder_leads_to_the_challenges,
                                  a_wildcard_is_requested_by_dns_01, an_external_account_is_bound,
                                  a_deleted_account_is_forgotten, faults_are_named, NULL};

    return run_tests("acme_lego", tests);
}
