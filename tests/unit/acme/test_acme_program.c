#include "acme/acme_program.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>

static char error[LIMIT_ACME_ERROR];
static struct str names[] = {{"a.test", 6}};
static struct acme_settings settings = {.challenge = ACME_TLS_ALPN_01, .timeout_ms = 7};
static struct acme_certificate certificate = {{"a.test", 6}, names, 1, &settings, {"", 0}, {"", 0}, {"", 0}};
static struct acme acme = {.state = {"/state", 6}, .challenges = {"/state/challenges", 17}};
static struct acme_order order = {.acme = &acme, .certificate = &certificate, .directory = "https://ca.test/dir"};
static struct acme_request request;

static void set_up(void)
{
    request = (struct acme_request){.error = error, .size = sizeof(error)};
    *error = '\0';
}

START_TEST(authorities_and_addresses_have_separate_folders)
{
    char folders[3][PATH_MAX];

    for (int i = 0; i < 3; i++) {
        set_up();
        order.directory = i == 1 ? "https://other.test/dir" : "https://ca.test/dir";
        settings.email = i == 2 ? STR("admin@a.test") : STR("");
        ck_assert(acme_request_open(&request, &order, "client"));
        memcpy(folders[i], request.folder, PATH_MAX);
        ck_assert_ptr_nonnull(strstr(request.folder, "/state/clients/client-"));
    }
    ck_assert(strcmp(folders[0], folders[1]) != 0 && strcmp(folders[0], folders[2]) != 0);
    ck_assert_str_eq(request.email, "admin@a.test");
    ck_assert_str_eq(request.names[0], "a.test");
}
END_TEST

START_TEST(a_command_line_begins_with_the_program)
{
    set_up();
    ck_assert(acme_request_open(&request, &order, "client"));
    acme_request_start(&request);
    ck_assert_str_eq(request.run.arguments[0], "client");
    ck_assert_uint_eq(request.run.count, 1);
    ck_assert_str_eq(request.run.challenges, "/state/challenges");
    ck_assert_str_eq(request.run.challenge_type, "tls-alpn-01");
    ck_assert_uint_eq(request.run.timeout_ms, 7);
    ck_assert_str_eq(request.run.home, request.folder);
}
END_TEST

START_TEST(long_paths_are_reported)
{
    static char longest[PATH_MAX];
    char path[PATH_MAX];

    set_up();
    ck_assert(acme_request_open(&request, &order, "client"));
    ck_assert_int_eq(acme_request_path(&request, path, "a/%s.pem", "b"), 0);
    ck_assert(str_ends(str_from(path), STR("/a/b.pem")));
    memset(longest, 'x', sizeof(longest) - 1);
    ck_assert_int_eq(acme_request_path(&request, path, "%s", longest), -EINVAL);
    ck_assert_str_eq(error, "a path in the state folder is too long");
    acme.state = str_of(longest, sizeof(longest) - 1);
    ck_assert(!acme_request_open(&request, &order, "client"));
    acme.state = STR("/state");
}
END_TEST

START_TEST(each_end_has_a_text)
{
    static const struct {
        int status, result;
        const char *text;
    } rows[] = {
        {-EINTR, -EINTR, ""},
        {-ENOENT, -EINVAL, "the client client is not installed: apt-get install client"},
        {-ETIMEDOUT, -EINVAL, "the client did not end within acme.timeout, and was killed"},
        {-ECHILD, -EINVAL, "the client was killed"},
        {-ENOMEM, -EINVAL, "the client cannot be started (12: Cannot allocate memory)"},
        {1, -EINVAL, "the last line"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up();
        ck_assert(acme_request_open(&request, &order, "client"));
        request.run.length =
            (size_t)snprintf(request.run.output, sizeof(request.run.output), "a line\nthe last line\n");
        ck_assert_int_eq(acme_request_ended(&request, rows[i].status), rows[i].result);
        ck_assert_str_eq(error, rows[i].text);
    }
    set_up();
    ck_assert_int_eq(acme_request_failed(&request, "the folder", "created", -EACCES), -EINVAL);
    ck_assert_str_eq(error, "the folder cannot be created (13: Permission denied)");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {authorities_and_addresses_have_separate_folders,
                                  a_command_line_begins_with_the_program, long_paths_are_reported, each_end_has_a_text,
                                  NULL};

    return run_tests("acme_program", tests);
}
