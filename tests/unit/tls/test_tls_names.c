#include "tls/tls_names.h"

#include "../runner.h"

#include <errno.h>
#include <string.h>

static const struct {
    const char *name;
    int result;
} added[] = {
    {"example.com", 0},
    {"EXAMPLE.com.", -EEXIST},
    {"*.example.com", 0},
    {"*.a.example.com", 0},
    {".dotted.org", 0},
    {"mail.*", 0},
    {"mail.example.*", 0},
    {"~^regex\\.(.*)$", 0},
    {"", 0},
    {"a.*.com", -EINVAL},
    {"*example.com", -EINVAL},
    {"*.example.*", -EINVAL},
    {"*.example.com", -EEXIST},
    {"*", -EINVAL},
    {"localhost", 0},
    {"*.", -EINVAL},
};
enum { ADDED = sizeof(added) / sizeof(added[0]) };

static const struct {
    const char *request, *found;
} request[] = {
    {"example.com", "example.com"},
    {"Example.COM", "example.com"},
    {"example.com.", "example.com"},
    {"EXAMPLE.COM.", "example.com"},
    {"example.com..", NULL},
    {"www.example.com", "*.example.com"},
    {"x.y.Example.Com.", "*.example.com"},
    {"x.a.example.com", "*.a.example.com"},
    {"a.example.com", "*.example.com"},
    {".example.com", NULL},
    {"dotted.org", ".dotted.org"},
    {"www.dotted.org", ".dotted.org"},
    {"notdotted.org", NULL},
    {"mail.net", "mail.*"},
    {"mail.example.net", "mail.example.*"},
    {"mail.example.com", "*.example.com"},
    {"mail", NULL},
    {"mailx.net", NULL},
    {"localhost", "localhost"},
    {"", NULL},
    {".", NULL},
    {"org", NULL},
    {"regex.org", NULL},
};

START_TEST(name_selects_one_server)
{
    struct tls_names names;

    tls_names_init(&names);
    for (int i = 0; i < ADDED; i++)
        ck_assert_msg(tls_names_add(&names, str_from(added[i].name), (void *)(uintptr_t)added[i].name) ==
                          added[i].result,
                      "%s", added[i].name);
    for (size_t i = 0; i < sizeof(request) / sizeof(request[0]); i++) {
        const char *found = tls_names_find(&names, str_from(request[i].request));
        ck_assert_msg(found && request[i].found ? strcmp(found, request[i].found) == 0 : found == request[i].found,
                      "%s finds %s", request[i].request, found ? found : "nothing");
    }
    tls_names_finish(&names);
}
END_TEST

START_TEST(overlong_names_are_unknown)
{
    struct tls_names names;
    char name[300];

    memset(name, '.', sizeof(name));
    tls_names_init(&names);
    ck_assert_int_eq(tls_names_add(&names, STR("*.com"), &names), 0);
    memcpy(name + 251, ".com", 4);
    ck_assert_ptr_eq(tls_names_find(&names, str_of(name, 255)), &names);
    memcpy(name + 296, ".com", 4);
    ck_assert_ptr_null(tls_names_find(&names, str_of(name, 300)));
    ck_assert_ptr_null(tls_names_find(&names, str_of("a\0.net", 6)));
    ck_assert_ptr_null(tls_names_find(&names, str_of(NULL, 0)));
    tls_names_finish(&names);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, name_selects_one_server);
    tcase_add_test(tcase, overlong_names_are_unknown);
}

int main(void)
{
    return run_suite("tls_names", add_tests);
}
