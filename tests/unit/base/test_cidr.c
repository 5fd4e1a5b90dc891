#include "base/cidr.h"

#include "../runner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage made = {0};

    if (text[0] == 'u') {
        made.ss_family = AF_UNIX;
    } else if (strchr(text, ':')) {
        made.ss_family = AF_INET6;
        ck_assert_int_eq(inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&made)->sin6_addr), 1);
    } else if (text[0]) {
        made.ss_family = AF_INET;
        ck_assert_int_eq(inet_pton(AF_INET, text, &((struct sockaddr_in *)&made)->sin_addr), 1);
    }
    return made;
}

START_TEST(range_contains_exactly_its_addresses)
{
    static const struct {
        const char *range, *address;
        bool inside;
    } cases[] = {
        {"10.0.0.0/8", "10.255.255.255", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "9.255.255.255", false},
        {"192.0.2.7", "192.0.2.7", true},
        {"192.0.2.7", "192.0.2.6", false},
        {"192.0.2.4/30", "192.0.2.7", true},
        {"192.0.2.4/30", "192.0.2.8", false},
        {"0.0.0.0/0", "255.1.2.3", true},
        {"0.0.0.0/0", "::1", false},
        {"::/0", "::1", true},
        {"::/0", "1.2.3.4", false},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::", false},
        {"::1", "::1", true},
        {"::1", "::2", false},
        {"10.0.0.0/8", "::ffff:10.1.2.3", true},
        {"10.0.0.0/8", "::ffff:11.1.2.3", false},
        {"::ffff:10.0.0.0/104", "10.1.2.3", true},
        {"::ffff:10.0.0.0/104", "::ffff:10.1.2.3", true},
        {"::ffff:11.0.0.1", "11.0.0.1", true},
        {"::ffff:11.0.0.1", "11.0.0.2", false},
        {"::ffff:0:0/96", "9.8.7.6", true},
        {"::ffff:0:0/96", "::1", false},
        {"unix:", "u", true},
        {"unix:", "127.0.0.1", false},
        {"127.0.0.1", "u", false},
        {"0.0.0.0/0", "", false},
        {"unix:", "", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_storage address = address_of(cases[i].address);
        struct cidr cidr;

        ck_assert_msg(cidr_parse(str_from(cases[i].range), &cidr) == 0, "%s", cases[i].range);
        ck_assert_msg(cidr_contains(&cidr, (const struct sockaddr *)&address) == cases[i].inside, "%s %s",
                      cases[i].range, cases[i].address);
    }
}
END_TEST

START_TEST(rejects_invalid_networks)
{
    static const char *const texts[] = {"",           "localhost",    "10.0.0.0/",   "10.0.0.0/33",
                                        "10.0.0.1/8", "10.0.0/8",     "10.0.0.0/-1", "::1/129",
                                        "::1/64",     "[::1]",        "10.0.0.0/8 ", "unix",
                                        "unix:/a",    "10.0.0.0/8/8", "1.2.3.4:80"};
    struct cidr cidr;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert_msg(cidr_parse(str_from(texts[i]), &cidr) == -EINVAL, "%s", texts[i]);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, range_contains_exactly_its_addresses);
    tcase_add_test(tcase, rejects_invalid_networks);
}

int main(void)
{
    return run_suite("cidr", add_tests);
}
