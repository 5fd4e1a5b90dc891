/* Addresses of names in shared memory, and the delay before a failed name is resolved again. */
#include "upstream/resolved_names.h"
#include "base/shared_zone.h"
#include "upstream/upstream_group.h"

#include "../http/suite.h"
#include "../overwrite.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct resolved_names *names;
static struct resolver_address found[LIMIT_UPSTREAM_ADDRESSES];

/* Stores the addresses 10.0.0.`first` and those that follow it. */
static void store(const char *key, unsigned first, size_t count)
{
    struct resolver_address addresses[LIMIT_UPSTREAM_ADDRESSES + 1] = {0};
    struct resolver_answer answer = {.addresses = addresses, .count = count};

    for (size_t i = 0; i < count; i++) {
        struct sockaddr_in *address = (struct sockaddr_in *)(void *)&addresses[i].socket;

        address->sin_family = AF_INET;
        address->sin_addr.s_addr = htonl(0x0a000000 + first + (uint32_t)i);
        addresses[i].length = sizeof(*address);
    }
    resolved_names_store(names, str_from(key), &answer);
}

/* Returns the last octet of the first address; 0: the name is not stored. */
static uint32_t first_of(const char *key)
{
    const struct sockaddr_in *address = (const struct sockaddr_in *)(const void *)&found[0].socket;

    return resolved_names_load(names, str_from(key), found) ? ntohl(address->sin_addr.s_addr) & 0xff : 0;
}

START_TEST(latest_answer_is_found)
{
    names = resolved_names_create();
    ck_assert_ptr_nonnull(names);
    ck_assert_uint_eq(resolved_names_load(names, STR("a.test:80"), found), 0);
    store("a.test:80", 1, 2);
    store("a.test:81", 7, 1);
    ck_assert_uint_eq(resolved_names_load(names, STR("a.test:80"), found), 2);
    ck_assert_uint_eq(first_of("a.test:80"), 1);
    ck_assert_uint_eq(first_of("a.test:81"), 7);
    store("a.test:80", 3, 1);
    ck_assert_uint_eq(resolved_names_load(names, STR("a.test:80"), found), 1);
    ck_assert_uint_eq(first_of("a.test:80"), 3);
    ck_assert_uint_eq(first_of("a.test:8"), 0);
    resolved_names_destroy(names);
}
END_TEST

START_TEST(failure_stores_nothing)
{
    char longest[LIMIT_RESOLVED_KEY + 1];

    names = resolved_names_create();
    store("a.test:80", 1, 1);
    store("a.test:80", 1, 0);
    ck_assert_uint_eq(first_of("a.test:80"), 1);
    store("", 1, 1);
    ck_assert_uint_eq(first_of(""), 0);
    memset(longest, 'x', sizeof(longest));
    longest[LIMIT_RESOLVED_KEY] = 0;
    store(longest, 1, 1);
    ck_assert_uint_eq(first_of(longest), 0);
    longest[LIMIT_RESOLVED_KEY - 1] = 0;
    store(longest, 1, 1);
    ck_assert_uint_eq(first_of(longest), 1);
    resolved_names_destroy(names);
    resolved_names_destroy(NULL);
}
END_TEST

START_TEST(names_and_addresses_are_limited)
{
    char key[16];

    names = resolved_names_create();
    store("many", 1, LIMIT_UPSTREAM_ADDRESSES + 1);
    ck_assert_uint_eq(resolved_names_load(names, STR("many"), found), LIMIT_UPSTREAM_ADDRESSES);
    for (unsigned i = 0; i < LIMIT_RESOLVED_NAMES; i++) {
        snprintf(key, sizeof(key), "%u", i);
        store(key, 9, 1);
        if (i == 1)
            store("0", 8, 1); /* stored again, later than "1" */
    }
    ck_assert_uint_eq(first_of("many"), 0);
    store("more", 5, 1);
    ck_assert_uint_eq(first_of("1"), 0);
    ck_assert_uint_eq(first_of("0"), 8);
    ck_assert_uint_eq(first_of("more"), 5);
    resolved_names_destroy(names);
}
END_TEST

START_TEST(other_processes_see_names)
{
    int status;

    names = resolved_names_create();
    if (fork() == 0) {
        store("a.test:80", 4, 1);
        _exit(0);
    }
    ck_assert_int_gt(wait(&status), 0);
    ck_assert_uint_eq(first_of("a.test:80"), 4);
    resolved_names_destroy(names);
}
END_TEST

START_TEST(oversize_address_is_left_out)
{
    struct resolver_address broken = {.length = sizeof(broken.socket) + 1};
    struct resolver_answer answer = {.addresses = &broken, .count = 1};

    names = resolved_names_create();
    resolved_names_store(names, STR("a.test:80"), &answer);
    ck_assert_uint_eq(resolved_names_load(names, STR("a.test:80"), found), 0);
    broken.length = sizeof(broken.socket);
    resolved_names_store(names, STR("a.test:80"), &answer);
    ck_assert_uint_eq(resolved_names_load(names, STR("a.test:80"), found), 1);
    resolved_names_destroy(names);
}
END_TEST

/* The memory of the stored key, which a compromised process can write. */
static char *stored_key(const char *key)
{
    struct str memory = str_of((const char *)names, shared_zone_size((struct shared_zone *)names));
    ssize_t offset = str_search(memory, str_from(key));

    ck_assert_int_ge(offset, 0);
    return (char *)names + offset;
}

START_TEST(forged_entries_are_not_used)
{
    static const size_t counts[] = {LIMIT_UPSTREAM_ADDRESSES + 1, SIZE_MAX / sizeof(struct resolver_address), SIZE_MAX};

    names = resolved_names_create();
    store("a.test:80", 1, 2);
    for (size_t i = 0; i < COUNT(counts); i++) {
        memcpy(stored_key("a.test:80") + LIMIT_RESOLVED_KEY + sizeof(uint64_t), &counts[i], sizeof(counts[i]));
        ck_assert_uint_eq(resolved_names_load(names, STR("a.test:80"), found), 0);
    }
    store("a.test:80", 1, 2);
    ck_assert_uint_eq(resolved_names_load(names, STR("a.test:80"), found), 2);
    memset(stored_key("a.test:80"), 'a', LIMIT_RESOLVED_KEY);
    ck_assert_uint_eq(resolved_names_load(names, STR("a.test:80"), found), 0);
    store("b.test:80", 3, 1);
    ck_assert_uint_eq(first_of("b.test:80"), 3);
    resolved_names_destroy(names);
}
END_TEST

/* Stores and loads a few names; every length is valid. */
static void use_names(void)
{
    char key[32];

    for (unsigned i = 0; i < LIMIT_RESOLVED_NAMES + 20; i++) {
        size_t count;

        snprintf(key, sizeof(key), "%u.test:80", i);
        store(key, i % 200, 1 + i % 5);
        count = resolved_names_load(names, str_from(key), found);
        ck_assert_uint_le(count, LIMIT_UPSTREAM_ADDRESSES);
        for (size_t k = 0; k < count; k++)
            ck_assert_uint_le(found[k].length, sizeof(found[k].socket));
    }
}

START_TEST(other_process_writes_meanwhile)
{
    names = resolved_names_create();
    use_while_other_process_writes(use_names, 1);
    use_names();
    store("a.test:80", 1, 2);
    ck_assert_uint_eq(first_of("a.test:80"), 1);
    resolved_names_destroy(names);
}
END_TEST

START_TEST(retry_delay_grows)
{
    ck_assert_uint_eq(upstream_resolve_retry_ms(1, 0), 1000);
    ck_assert_uint_eq(upstream_resolve_retry_ms(2, 0), 2000);
    ck_assert_uint_eq(upstream_resolve_retry_ms(3, 0), 4000);
    ck_assert_uint_eq(upstream_resolve_retry_ms(4, 0), 5000);
    ck_assert_uint_eq(upstream_resolve_retry_ms(UINT32_MAX, 0), 5000);
    ck_assert_uint_eq(upstream_resolve_retry_ms(1, 100), 100);
    ck_assert_uint_eq(upstream_resolve_retry_ms(4, 100), 100);
    ck_assert_uint_eq(upstream_resolve_retry_ms(1, 30000), 1000);
    ck_assert_uint_eq(upstream_resolve_retry_ms(9, 3000), 3000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        latest_answer_is_found, failure_stores_nothing, names_and_addresses_are_limited, other_processes_see_names,
        oversize_address_is_left_out, forged_entries_are_not_used, other_process_writes_meanwhile,
        retry_delay_grows,
    };

    return suite_run("resolved_names", tests, COUNT(tests));
}
