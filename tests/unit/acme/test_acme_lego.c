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

/* Beside ISSUES: queries the window. `RENEWED`: it renews the certificate. */
#define ASKS                                                                                                          \
    RECORDS "case \"$*\" in *--help) echo \"${HELP-   --ari-disable  Do not use it}\"; exit ${STATUS-0};; esac\n"     \
            "mkdir -p $2/certificates\n"                                                                             \
            "case \"$*\" in *' renew '*) echo \"acme: ${ANSWER}\"; [ \"$RENEWED\" ] || exit ${STATUS-0};; esac\n"      \
            "cp $HOME/../../${RENEWED}chain $2/certificates/a.test.crt\n"                                            \
            "cp $HOME/../../${RENEWED}key $2/certificates/a.test.key\nexit ${STATUS-0}\n"
#define AHEAD   "renewalInfo endpoint indicates that renewal is not needed"
#define REACHED "renewalInfo endpoint indicates that renewal is needed"
#define RENEW                                                                                                         \
    COMMON "--http --http.webroot CONF/webroot --domains a.test --domains b.test "                                   \
           "renew --days 0 --no-random-sleep \n"

static void set_variables(const char *answer, const char *renewed, const char *status)
{
    setenv("ANSWER", answer, 1);
    setenv("RENEWED", renewed, 1);
    setenv("STATUS", status, 1);
}

START_TEST(help_shows_support_of_the_window)
{
    static const struct {
        const char *help, *status;
        bool supports;
    } rows[] = {
        {"   --days value  The number\n   --ari-disable   Do not use the renewalInfo endpoint", "0", true},
        {"   --days value  The number\n   --ari-disable   Do not use the renewalInfo endpoint", "1", false},
        {"   --days value  The number\n   --ari-enable   Use the renewalInfo endpoint", "0", false},
        {"", "0", false},
    };

    order_set_up(ACME_LEGO, "lego", ASKS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        setenv("HELP", rows[i].help, 1);
        setenv("STATUS", rows[i].status, 1);
        ck_assert_msg(acme_order_supports_window(&order) == rows[i].supports, "%s", rows[i].help);
    }
    check_arguments("renew --help \nrenew --help \nrenew --help \nrenew --help \n");
    unsetenv("HELP");
    set_variables("", "", "0");
    order_tear_down();
}
END_TEST

START_TEST(each_answer_has_its_result)
{
    static const struct {
        const char *answer, *renewed, *status;
        int result;
        enum acme_window window;
    } rows[] = {
        {AHEAD, "", "0", 0, ACME_WINDOW_AHEAD},
        {"the server does not advertise a renewal info endpoint", "", "0", 0, ACME_WINDOW_UNKNOWN},
        {"", "", "0", 0, ACME_WINDOW_UNKNOWN},
        {"Could not create client: no such host", "", "1", -EINVAL, ACME_WINDOW_UNKNOWN},
        {REACHED, "", "1", -EINVAL, ACME_WINDOW_REACHED},
        {REACHED, "", "0", 0, ACME_WINDOW_REACHED},
        {REACHED, "next-", "1", -EINVAL, ACME_WINDOW_REACHED},
    };
    enum acme_window window;

    order_set_up(ACME_LEGO, "lego", ASKS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make_certificate(path_of("next-chain"), path_of("next-key"), "DNS:a.test,DNS:b.test", 0, 1000);
        set_variables("", "", "0");
        ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
        set_variables(rows[i].answer, rows[i].renewed, rows[i].status);
        window = 99;
        ck_assert_int_eq(acme_order_renew(&order, &window, error, sizeof(error)), rows[i].result);
        ck_assert_int_eq(window, rows[i].window);
        ck_assert_int_eq(*error != '\0', rows[i].result < 0);
    }
    set_variables("", "", "0");
    order_tear_down();
}
END_TEST

START_TEST(a_renewed_certificate_is_installed)
{
    enum acme_window window;

    order_set_up(ACME_LEGO, "lego", ASKS);
    make_certificate(path_of("next-chain"), path_of("next-key"), "DNS:a.test,DNS:b.test", 0, 1000);
    set_variables(REACHED, "", "0");
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    set_variables(REACHED, "next-", "0");
    ck_assert_int_eq(acme_order_renew(&order, &window, error, sizeof(error)), 1);
    check_arguments(HTTP RENEW);
    ck_assert(acme_file_is_installed(&certificate, path_of("next-chain")));
    /* Without a key, and with one of another certificate. */
    make_certificate(path_of("next-chain"), path_of("other"), "DNS:a.test,DNS:b.test", 0, 1000);
    ck_assert_int_eq(acme_order_renew(&order, &window, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client wrote a certificate without its key or without all names");
    ck_assert_int_eq(window, ACME_WINDOW_REACHED);
    set_variables("", "", "0");
    order_tear_down();
}
END_TEST

START_TEST(only_the_authority_of_the_certificate_is_queried)
{
    enum acme_window window;

    order_set_up(ACME_LEGO, "lego", ASKS);
    set_variables(AHEAD, "", "0");
    ck_assert_int_eq(acme_order_renew(&order, &window, error, sizeof(error)), 0); /* there is no certificate */
    ck_assert_int_eq(window, ACME_WINDOW_UNKNOWN);
    ck_assert_int_eq(acme_order_request(&order, error, sizeof(error)), 0);
    order.directory = "https://other.test/dir";
    ck_assert_int_eq(acme_order_renew(&order, &window, error, sizeof(error)), 0);
    ck_assert_int_eq(window, ACME_WINDOW_UNKNOWN);
    check_arguments(HTTP);
    order.directory = "https://ca.test/dir";
    ck_assert_int_eq(acme_order_renew(&order, &window, error, sizeof(error)), 0);
    ck_assert_int_eq(window, ACME_WINDOW_AHEAD);
    check_arguments(HTTP RENEW);
    order_tear_down();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_certificate_is_requested_by_http_01, the_web_folder_leads_to_the_challenges,
                                  a_wildcard_is_requested_by_dns_01, an_external_account_is_bound,
                                  a_deleted_account_is_forgotten, faults_are_named,
                                  help_shows_support_of_the_window, each_answer_has_its_result,
                                  a_renewed_certificate_is_installed, only_the_authority_of_the_certificate_is_queried,
                                  NULL};

    return run_tests("acme_lego", tests);
}
