/* `auth_basic`: accepted and rejected users, the responses, and the release of everything after a cancelled check. */
#include "loopback.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct loopback server;

#define SALTED "$6$rounds=1000$saltsalt$"
#define USERS                                                                                                \
    "ada:" SALTED "/IiX/CoEcxCZ9SksEXnbjfCT1LGvD4z5OpJkaFYl/"                                                \
    "T37OAwuKZ8I8BixDhruhPLkw6lS7dw/6wQWgQnGo7lLg/\n"                                                        \
    "colon:" SALTED "kF2jhmjjaYMFwyvHjGPaaYIXzg6he1ejETHRovgPV"                                              \
    ".NWWVvadW85.fyrVpYCuxrzvLPelwDHs8BD4NdLZSR1E0\n"                                                        \
    "old:$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/\n"

#define SERVER                                                                                              \
    "http:\n"                                                                                               \
    "  log_format: {one: '$uri $status $remote_user'}\n"                                                   \
    "  access_log: {path: @/log, format: one}\n"                                                           \
    "  server:\n"                                                                                           \
    "    listen: 8080\n"                                                                                    \
    "    auth_basic: Members \"only\" \\ here\n"                                                            \
    "    auth_basic_user_file: @/users\n"                                                                   \
    "    location:\n"                                                                                       \
    "      /in: {return: 200 in}\n"                                                                         \
    "      /open: {auth_basic: off, return: 200 open}\n"                                                    \
    "      /of/: {auth_basic: $arg_realm, return: 200 in}\n"                                                \
    "      /quoted: {auth_basic: '\"Members only\"', return: 200 in}\n"                                      \
    "      /any: {satisfy: any, deny: all, return: 200 in}\n"                                               \
    "      /near: {satisfy: any, allow: 127.0.0.1, deny: all, return: 200 in}\n"                            \
    "      /both: {allow: 192.0.2.1, deny: all, return: 200 in}\n"                                          \
    "      /absent: {auth_basic_user_file: @/absent, return: 200 in}\n"                                     \
    "      /folder: {auth_basic_user_file: @/, return: 200 in}\n"                                           \
    "      /page: {error_page: 401 /open, return: 200 in}\n"                                                \
    "      /twice: {error_page: 401 /in, return: 200 in}\n"                                                 \
    "      /twice-calm: {error_page: 401 =200 /open, return: 200 in}\n"                                     \
    "      /twice-other: {error_page: 401 /absent, return: 200 in}\n"

#define ADA    "Basic YWRhOm9wZW4gc2VzYW1l"     /* ada:open sesame */
#define BAD    "Basic YWRhOm9wZW4gc2VzYW1m"     /* ada:open sesamf */
#define COLON  "basic Y29sb246cGFzczp3b3Jk"     /* colon:pass:word */
#define NOBODY "Basic Ym9iOm9wZW4gc2VzYW1l"     /* bob:open sesame */
#define OLD    "Basic b2xkOm9wZW4gc2VzYW1l"     /* old:open sesame */
#define NUL    "Basic YWRhOm9wZW4gc2VzYW1lAHg=" /* ada:open sesame\0x */

static void set_up(void)
{
    loopback_make_directory(&server);
    loopback_write(&server, "users", STR(USERS));
    loopback_open(&server, SERVER);
}

static int request_status(const char *path, const char *credentials)
{
    char head[256];

    snprintf(head, sizeof(head), "GET %s HTTP/1.1%s%s", path, credentials ? "\nAuthorization: " : "",
             credentials ? credentials : "");
    loopback_request(&server, head);
    return server.status;
}

static const struct {
    const char *path, *credentials;
    int status;
} cases[] = {
    {"/in", NULL, 401},
    {"/in", ADA, 200},
    {"/in", ADA, 200}, /* from the cache of checked passwords */
    {"/in", COLON, 200},
    {"/in", BAD, 401},
    {"/in", NOBODY, 401},
    {"/in", OLD, 401},
    {"/in", NUL, 401},
    {"/in", "Basic", 401},
    {"/in", "Basic ", 401},
    {"/in", "Basic !!!", 401},
    {"/in", "Basic YWRh", 401},     /* ada */
    {"/in", "Basic OnNlc2FtZQ==", 401}, /* :sesame */
    {"/in", "Bearer YWRhOm9wZW4gc2VzYW1l", 401},
    {"/open", NULL, 200},
    {"/open", BAD, 200},
    {"/any", NULL, 401},
    {"/any", BAD, 401},
    {"/any", ADA, 200},
    {"/near", NULL, 200},
    {"/near", BAD, 200},
    {"/both", ADA, 403},
    {"/absent", ADA, 403},
    {"/absent", NULL, 401},
    {"/folder", ADA, 500},
    {"/page", NULL, 401},
};

START_TEST(passwords_are_checked)
{
    set_up();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(request_status(cases[i].path, cases[i].credentials) == cases[i].status, "%s %s: %d",
                      cases[i].path, cases[i].credentials ? cases[i].credentials : "-", server.status);
    ck_assert_text(server.body, "open");
    ck_assert_text(loopback_field(&server, "WWW-Authenticate"),
                   "Basic realm=\"Members \\\"only\\\" \\\\ here\", charset=\"UTF-8\"");
    ck_assert(loopback_logged(&server, "user \"ada\": password mismatch, client: 127.0.0.1"));
    ck_assert(loopback_logged(&server, "user \"bob\" was not found in \""));
    ck_assert(loopback_logged(&server, "users:3: user \"old\" cannot log in: the password is stored as $1$"));
    ck_assert(loopback_logged(&server, "absent\" cannot be read (2: No such file or directory)"));
    request_status("/quoted", NULL);
    ck_assert_text(loopback_field(&server, "WWW-Authenticate"), "Basic realm=\"Members only\", charset=\"UTF-8\"");
    request_status("/of/x?realm=a\"b", NULL);
    ck_assert_text(loopback_field(&server, "WWW-Authenticate"), "Basic realm=\"a\\\"b\", charset=\"UTF-8\"");
    loopback_close(&server);
}
END_TEST

static unsigned count(const char *text)
{
    struct str rest = buffer_str(&server.logged);
    unsigned found = 0;

    for (ssize_t at; (at = str_search(rest, str_from(text))) >= 0; found++)
        rest = str_skip(rest, (size_t)at + 1);
    return found;
}

/* A wrong password is hashed and logged once, even if the error page requires a password, too. */
START_TEST(password_is_checked_once)
{
    set_up();
    ck_assert_int_eq(request_status("/twice", BAD), 401);
    ck_assert_uint_eq(count("password mismatch"), 1);
    ck_assert_text(loopback_field(&server, "WWW-Authenticate"),
                   "Basic realm=\"Members \\\"only\\\" \\\\ here\", charset=\"UTF-8\"");
    ck_assert_int_eq(request_status("/twice", NOBODY), 401);
    ck_assert_uint_eq(count("was not found"), 1);
    ck_assert_int_eq(request_status("/twice", ADA), 200);
    ck_assert_int_eq(request_status("/twice-calm", BAD), 200);
    ck_assert_text(server.body, "open");
    ck_assert(str_starts(loopback_field(&server, "WWW-Authenticate"), STR("Basic realm=")));
    ck_assert_uint_eq(count("password mismatch"), 2);
    ck_assert_int_eq(request_status("/twice-other", BAD), 403); /* checked again for another password file */
    ck_assert(loopback_logged(&server, "absent\" cannot be read"));
    loopback_close(&server);
}
END_TEST

START_TEST(changed_file_is_read_again)
{
    set_up();
    ck_assert_int_eq(request_status("/in", ADA), 200);
    loopback_write(&server, "users", STR("# nobody\n"));
    loopback_skip(&server, 1100);
    ck_assert_int_eq(request_status("/in", ADA), 401);
    ck_assert_int_eq(request_status("/in", ADA), 401);
    loopback_write(&server, "users", STR(USERS));
    ck_assert_int_eq(request_status("/in", ADA), 200);
    loopback_skip(&server, 1100); /* the file is checked again, and no password is hashed */
    ck_assert_int_eq(request_status("/in", ADA), 200);
    loopback_close(&server);
}
END_TEST

START_TEST(clients_may_disconnect)
{
    set_up();
    for (unsigned turns = 0; turns < 6; turns++) {
        for (unsigned i = 0; i < 6; i++)
            loopback_disconnect(&server, "GET /in HTTP/1.1\nAuthorization: " BAD, turns);
    }
    ck_assert_int_eq(request_status("/in", ADA), 200);
    loopback_close(&server);
}
END_TEST

/* More checks than the queue can hold: the others get a 503. */
START_TEST(full_queue_responds_503)
{
    const char *head = "GET /in HTTP/1.1\r\nHost: a\r\nAuthorization: " BAD "\r\nConnection: close\r\n\r\n";
    int clients[300];
    unsigned busy = 0, rejected = 0;

    set_up();
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        clients[i] = loopback_connect(&server);
        ck_assert_int_eq(write(clients[i], head, strlen(head)), (ssize_t)strlen(head));
    }
    while (busy + rejected < sizeof(clients) / sizeof(clients[0])) {
        char answer[4096];

        loopback_turn(&server, 5);
        for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
            ssize_t length = clients[i] < 0 ? -1 : read(clients[i], answer, sizeof(answer) - 1);

            if (length <= 0)
                continue;
            answer[length] = '\0';
            busy += strstr(answer, "503 ") && strstr(answer, "Retry-After: 5");
            rejected += strstr(answer, "401 ") != NULL;
            close(clients[i]);
            clients[i] = -1;
        }
    }
    ck_assert_uint_ge(rejected, 256);
    ck_assert_uint_ge(busy, 1);
    ck_assert(loopback_logged(&server, "too many password checks"));
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    struct configuration_source source = {0};
    struct buffer diagnostics = {0};
    struct log log = {.level = LOG_EMERG};

    source.text = STR("http:\n  server:\n    listen: 8080\n    location: {/: {auth_basic: x}}\n");
    ck_assert_ptr_null(configuration_load(&source, &log, &diagnostics));
    ck_assert_int_ge(str_search(buffer_str(&diagnostics), STR("auth_basic needs auth_basic_user_file")), 0);
    buffer_finish(&diagnostics);
    set_up();
    loopback_close(&server);
    source.text = STR("http:\n  server:\n    listen: 8080\n    auth_basic_user_file: /nonexistent/users\n");
    diagnostics = (struct buffer){0};
    configuration_destroy(configuration_load(&source, &log, &diagnostics));
    ck_assert_int_ge(str_search(buffer_str(&diagnostics), STR("\"/nonexistent/users\" cannot be read (2: ")), 0);
    buffer_finish(&diagnostics);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        passwords_are_checked, password_is_checked_once, changed_file_is_read_again, clients_may_disconnect,
        full_queue_responds_503, invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("auth_basic", tests);
}
