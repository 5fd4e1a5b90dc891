#include "acme/acme_uacme.h"

#include "../runner.h"
#include "acme/acme_file.h"
#include "made.h"

#include <errno.h>

static void drop_line(void *owner, enum log_level level, struct str line)
{
}

static struct log lines = {.level = LOG_INFO, .sink = drop_line};
static struct acme_events events;
static struct str names[] = {{"a.test", 6}, {"b.test", 6}};
static struct acme_settings settings;
static struct acme_certificate certificate;
static struct acme acme;
static struct acme_order order;
static char error[LIMIT_ACME_ERROR], state[64], file[96];

/* A client that records its arguments, and copies a certificate if it is to issue one. */
#define CLIENT                                                                                                    \
    "#!/bin/sh\nPATH=/usr/bin:/bin\nprintf '%s ' \"$@\" >>$HOME/../../arguments; echo >>$HOME/../../arguments\n" \
    "case \"$*\" in *' issue '*) ;; *) exit ${NEW_STATUS-0};; esac\n"
#define ISSUES                                                                                       \
    CLIENT "mkdir -p a.test private/a.test\n[ -e private/a.test/key.pem ] && exit 9\n"               \
           "cp $HOME/../../chain a.test/cert.pem; cp $HOME/../../key private/a.test/key.pem\n"

static void set_up(const char *script)
{
    folder_make();
    snprintf(state, sizeof(state), "%s", folder);
    snprintf(file, sizeof(file), "%s/installed.pem", folder);
    file_write(path_of("uacme"), script, 0755);
    ck_assert_int_eq(mkdir(path_of("clients"), 0700), 0);
    make_certificate(path_of("chain"), path_of("key"), "DNS:a.test,DNS:b.test", 0, 1000);
    setenv("PATH", folder, 1);
    unsetenv("NEW_STATUS");
    settings = (struct acme_settings){.email = {"admin@a.test, more", 12},
                                       .key_type = ACME_RSA4096, .timeout_ms = 20000};
    certificate = (struct acme_certificate){names[0], names, 2, &settings, str_from(file), STR("")};
    acme = (struct acme){.items = &certificate, .count = 1, .state = str_from(state), .challenges = STR("/none")};
    order = (struct acme_order){&acme, &certificate, "https://ca.test/dir", "/the/hook", &events, &lines};
    ck_assert_int_eq(acme_events_open(&events, -1), 0);
}

static void tear_down(void)
{
    acme_events_close(&events);
    setenv("PATH", "/usr/bin:/bin", 1);
    folder_remove();
}

/* The folder name in the arguments is replaced by CONF. */
static void check_arguments(const char *expected)
{
    char found[2048], command[256];
    FILE *stream;
    size_t length;

    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(command, sizeof(command), "sed 's|[^ ]*/uacme-[0-9a-f]*|CONF|' %s/arguments", folder);
    stream = popen(command, "re");
    length = fread(found, 1, sizeof(found) - 1, stream);
    pclose(stream);
    found[length] = '\0';
    ck_assert_str_eq(found, expected);
    setenv("PATH", folder, 1);
}

#define NEW   "-v -a https://ca.test/dir -c CONF -y new admin@a.test \n"
#define ISSUE "-v -a https://ca.test/dir -c CONF -y -t RSA -b 4096 -f -o -h /the/hook issue a.test b.test \n"

START_TEST(an_account_is_registered_once)
{
    struct acme_validity validity;

    set_up(ISSUES);
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), 0);
    ck_assert_str_eq(error, "");
    check_arguments(NEW ISSUE);
    ck_assert_int_eq(acme_file_read(file, &certificate, &validity), 0);
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), 0);
    check_arguments(NEW ISSUE ISSUE);
    /* Another authority has another account. */
    order.directory = "https://other.test/dir";
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), 0);
    check_arguments(NEW ISSUE ISSUE "-v -a https://other.test/dir -c CONF -y new admin@a.test \n"
                                    "-v -a https://other.test/dir -c CONF -y -t RSA -b 4096 -f -o -h /the/hook issue "
                                    "a.test b.test \n");
    tear_down();
}
END_TEST

START_TEST(an_external_account_is_bound)
{
    set_up(ISSUES);
    settings.eab_key_id = STR("kid-1");
    settings.eab_key = STR("c2VjcmV0");
    settings.email = STR("");
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), 0);
    check_arguments("-v -a https://ca.test/dir -c CONF -y -e kid-1:c2VjcmV0 new \n" ISSUE);
    tear_down();
}
END_TEST

START_TEST(a_lost_account_is_registered_again)
{
    set_up(CLIENT "echo 'uacme: the server reported the following error:'\n"
                  "echo '  \"detail\": \"unknown account\",'\nexit 2\n");
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "unknown account");
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    check_arguments(NEW ISSUE NEW ISSUE);
    tear_down();
}
END_TEST

START_TEST(failed_registration_is_reported)
{
    set_up(CLIENT);
    setenv("NEW_STATUS", "2", 1);
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    check_arguments(NEW);
    file_write(path_of("uacme"), "#!/bin/sh\necho 'uacme: Account already exists at x'\nexit 2\n", 0755);
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "uacme: Account already exists at x"); /* of the second run */
    tear_down();
}
END_TEST

START_TEST(faults_of_the_client_are_named)
{
    set_up(ISSUES);
    settings.timeout_ms = 20000;
    make_certificate(path_of("chain"), path_of("key"), "DNS:a.test", 0, 1000);
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client wrote a certificate without its key or without all names");
    file_write(path_of("uacme"), CLIENT "exit 0\n", 0755);
    ck_assert_int_eq(access(file, F_OK), -1);
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    file_write(path_of("uacme"), CLIENT "kill -9 $$\n", 0755);
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client was killed");
    settings.timeout_ms = 200;
    file_write(path_of("uacme"), CLIENT "exec sleep 600\n", 0755);
    unlink(path_of("clients"));
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client did not end within acme.timeout, and was killed");
    ck_assert_int_eq(unlink(path_of("uacme")), 0);
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "the client uacme is not installed: apt-get install uacme");
    acme.state = STR("/proc/none");
    ck_assert_int_eq(acme_uacme_request(&order, error, sizeof(error)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error, "/proc/none/clients/uacme-"));
    tear_down();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {an_account_is_registered_once, an_external_account_is_bound,
                                         a_lost_account_is_registered_again, failed_registration_is_reported,
                                         faults_of_the_client_are_named, NULL};

    return run_tests("acme_uacme", tests);
}
