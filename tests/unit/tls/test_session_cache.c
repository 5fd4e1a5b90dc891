#include "tls/session_caches.h"

#include "base/limits.h"
#include "base/shared_zone.h"

#include "../overwrite.h"
#include "../runner.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct session_cache *cache;
static char into[LIMIT_TLS_SESSION];

static struct str id_of(unsigned number)
{
    static char id[SESSION_ID_MAX + 1];

    snprintf(id, sizeof(id), "%032u", number);
    return str_of(id, SESSION_ID_MAX);
}

/* A session that consists of its number, repeated. */
static struct str session_of(unsigned number, size_t length)
{
    static char text[LIMIT_TLS_SESSION + 100];

    for (size_t i = 0; i < length; i += 9)
        snprintf(text + i, 10, "<%07u>", number % 10000000);
    return str_of(text, length);
}

static void insert_session(unsigned number, size_t length, uint64_t now_ms, uint64_t life_ms)
{
    session_cache_insert(cache, id_of(number), session_of(number, length), now_ms, life_ms);
}

/* Returns true if the session is found; checks that it is complete. */
static bool session_is_found(unsigned number, size_t length, uint64_t now_ms)
{
    size_t found = session_cache_get(cache, id_of(number), now_ms, into);

    ck_assert(found == 0 || str_equal(str_of(into, found), session_of(number, length)));
    return found > 0;
}

/* Returns true if the text occurs anywhere in the memory of the cache. */
static bool memory_contains(const char *word)
{
    return str_search(str_of((const char *)cache, shared_zone_size((struct shared_zone *)cache)), str_from(word)) >= 0;
}

static void open_cache(size_t size)
{
    cache = session_cache_create(size);
    ck_assert_ptr_nonnull(cache);
}

START_TEST(stored_found_and_removed)
{
    ck_assert_ptr_null(session_cache_create(SESSION_CACHE_MIN - 1));
    ck_assert_ptr_null(session_cache_create(0));
    open_cache(SESSION_CACHE_MIN);
    ck_assert(!session_is_found(1, 100, 0));
    insert_session(1, 100, 0, 1000);
    insert_session(2, 200, 0, 1000);
    ck_assert(session_is_found(1, 100, 0));
    ck_assert(session_is_found(2, 200, 999));
    ck_assert(!session_is_found(3, 100, 0));
    ck_assert(memory_contains("<0000001>"));
    session_cache_remove(cache, id_of(1));
    session_cache_remove(cache, id_of(3));
    ck_assert(!session_is_found(1, 100, 0));
    ck_assert(session_is_found(2, 200, 0));
    ck_assert(!memory_contains("<0000001>"));
    insert_session(2, 50, 0, 1000); /* the same id again: the newer session is returned */
    ck_assert(session_is_found(2, 50, 0));
    ck_assert_uint_eq(session_cache_get(cache, id_of(2), 0, into), 50);
    session_cache_remove(cache, id_of(2));
    ck_assert(!memory_contains("<0000002>"));
    session_cache_destroy(cache);
    session_cache_destroy(NULL);
}
END_TEST

START_TEST(invalid_sessions_are_rejected)
{
    open_cache(SESSION_CACHE_MIN);
    session_cache_insert(cache, STR(""), STR("x"), 0, 1000);
    session_cache_insert(cache, STR("a"), STR(""), 0, 1000);
    session_cache_insert(cache, STR("123456789012345678901234567890123"), STR("x"), 0, 1000);
    insert_session(1, SESSION_CACHE_MIN / 8, 0, 1000);
    ck_assert_uint_eq(session_cache_get(cache, STR(""), 0, into), 0);
    ck_assert_uint_eq(session_cache_get(cache, STR("a"), 0, into), 0);
    ck_assert_uint_eq(session_cache_get(cache, STR("123456789012345678901234567890123"), 0, into), 0);
    ck_assert(!session_is_found(1, 1, 0));
    session_cache_insert(cache, STR("a"), STR("short id"), 0, 1000);
    ck_assert_uint_eq(session_cache_get(cache, STR("a"), 0, into), 8);
    ck_assert_uint_eq(session_cache_get(cache, STR("b"), 0, into), 0);
    session_cache_destroy(cache);
    open_cache(1024 * 1024);
    insert_session(1, LIMIT_TLS_SESSION, 0, 1000);
    insert_session(2, LIMIT_TLS_SESSION + 1, 0, 1000);
    ck_assert(session_is_found(1, LIMIT_TLS_SESSION, 0));
    ck_assert(!session_is_found(2, LIMIT_TLS_SESSION + 1, 0));
    session_cache_destroy(cache);
}
END_TEST

/* Each session expires at its own time. The next lookup, or the next stored session, wipes its bytes. */
START_TEST(session_expires_at_its_own_time)
{
    open_cache(SESSION_CACHE_MIN);
    insert_session(1, 100, 0, 1000);
    insert_session(2, 100, 0, 3000);
    ck_assert(session_is_found(1, 100, 999));
    ck_assert(memory_contains("<0000001>"));
    ck_assert(!session_is_found(1, 100, 1000));
    ck_assert(!memory_contains("<0000001>"));
    ck_assert(memory_contains("<0000002>"));
    insert_session(3, 100, 3000, 1000);
    ck_assert(!memory_contains("<0000002>"));
    ck_assert(!session_is_found(2, 100, 2000));
    ck_assert(session_is_found(3, 100, 3999));
    session_cache_destroy(cache);
}
END_TEST

/*
 * Fills the ring many times with sessions of all lengths: it contains the newest sessions, no bytes of the others, and
 * is never empty.
 */
START_TEST(oldest_session_is_replaced)
{
    unsigned oldest = 0;

    open_cache(SESSION_CACHE_MIN + (size_t)_i * 8);
    for (unsigned number = 1; number < 3000; number++) {
        size_t stored_bytes = 0;
        char word[16];

        insert_session(number, 20 + number * 37 % 1500, 0, 1000);
        ck_assert(session_is_found(number, 20 + number * 37 % 1500, 0));
        if (number % 50 == 7)
            session_cache_remove(cache, id_of(number - 3));
        if (number % 100)
            continue;
        while (!session_is_found(oldest, 20 + oldest * 37 % 1500, 0) && oldest < number) {
            snprintf(word, sizeof(word), "<%07u>", oldest);
            ck_assert_msg(!memory_contains(word), "%s is still there", word);
            oldest++;
        }
        for (unsigned i = oldest; i <= number; i++) {
            bool there = session_is_found(i, 20 + i * 37 % 1500, 0);

            ck_assert(there || (i + 3) % 50 == 7);
            stored_bytes += there ? 20 + i * 37 % 1500 : 0;
        }
        ck_assert_uint_gt(stored_bytes, SESSION_CACHE_MIN / 3);
    }
    session_cache_destroy(cache);
}
END_TEST

/* Every process finds each session. */
START_TEST(sessions_are_shared_by_all_processes)
{
    int status;

    open_cache(SESSION_CACHE_MIN);
    insert_session(1, 100, 0, 1000);
    if (fork() == 0) {
        insert_session(2, 100, 0, 1000);
        _exit(session_is_found(1, 100, 0) ? 0 : 1);
    }
    wait(&status);
    ck_assert_int_eq(status, 0);
    ck_assert(session_is_found(2, 100, 0));
    session_cache_destroy(cache);
}
END_TEST

/* A process that dies with the lock does not block the others. */
START_TEST(death_with_the_lock_empties_the_cache)
{
    int status;

    NEEDS_ROBUST_FUTEXES();
    open_cache(SESSION_CACHE_MIN);
    insert_session(2, 100, 0, 1000);
    if (fork() == 0) {
        (void)shared_zone_lock((struct shared_zone *)cache);
        _exit(0);
    }
    wait(&status);
    ck_assert(!session_is_found(2, 100, 0));
    ck_assert(!memory_contains("<0000002>"));
    insert_session(3, 100, 0, 1000);
    ck_assert(session_is_found(3, 100, 0));
    session_cache_destroy(cache);
}
END_TEST

/* The master neither waits for a lock nor uses a number or a pointer that a worker wrote. */
START_TEST(cache_of_the_master_withstands_overwriting)
{
    open_cache(SESSION_CACHE_MIN);
    for (int byte = -1; byte <= 1; byte++) {
        overwrite_shared_memory(byte);
        ck_assert_ptr_eq(session_cache_share(cache), cache);
        session_cache_destroy(cache);
    }
    session_cache_destroy(cache);
}
END_TEST

enum { SIZE_FIELD = -12, LENGTH_FIELD = -8, ID_LENGTH_FIELD = -4 }; /* offsets from the id in a record */

/* Writes a field of the stored record of a session, as a compromised process could. */
static void forge_field(unsigned number, int field, uint32_t value)
{
    struct str memory = str_of((const char *)cache, shared_zone_size((struct shared_zone *)cache));
    long offset = (long)str_search(memory, id_of(number));

    ck_assert_int_ge(offset, 0);
    memcpy((char *)cache + offset + field, &value, sizeof(value));
}

START_TEST(forged_length_is_not_copied)
{
    static const uint32_t lengths[] = {LIMIT_TLS_SESSION + 1, SESSION_CACHE_MIN, 0x7fffffff, UINT32_MAX};

    open_cache(SESSION_CACHE_MIN);
    insert_session(1, 100, 0, 1000);
    forge_field(1, LENGTH_FIELD, 50);
    ck_assert_uint_eq(session_cache_get(cache, id_of(1), 0, into), 50);
    forge_field(1, LENGTH_FIELD, lengths[_i]);
    ck_assert_uint_eq(session_cache_get(cache, id_of(1), 0, into), 0);
    session_cache_remove(cache, id_of(1));
    insert_session(1, 100, 0, 1000);
    ck_assert(session_is_found(1, 100, 0));
    session_cache_destroy(cache);
}
END_TEST

static void fill_and_check(void)
{
    for (unsigned number = 1000; number < 2000; number++) {
        insert_session(number, 20 + number * 37 % 1500, 0, 1000);
        ck_assert(session_is_found(number, 20 + number * 37 % 1500, 0));
        ck_assert_uint_le(session_cache_get(cache, id_of(number - 2), 0, into), LIMIT_TLS_SESSION);
    }
}

/* Forged fields lose sessions, no more: eviction ends, and later sessions are stored and found. */
START_TEST(forged_fields_lose_sessions_only)
{
    static const uint32_t values[] = {0, 1, 8, 64, SESSION_CACHE_MIN, 0x7fffffff, UINT32_MAX};
    static const int fields[] = {SIZE_FIELD, LENGTH_FIELD, ID_LENGTH_FIELD};

    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        open_cache(SESSION_CACHE_MIN);
        for (unsigned number = 1; number <= 20; number++)
            insert_session(number, 100, 0, 1000);
        for (unsigned number = 1; number <= 20; number += 5)
            forge_field(number, fields[i], values[_i]);
        fill_and_check();
        session_cache_destroy(cache);
    }
}
END_TEST

static unsigned logged;

static void count_line(void *owner, enum log_level level, struct str line)
{
    logged += level == LOG_ALERT && str_search(line, STR("ssl_session_cache \"one\"")) >= 0;
}

/* Every number after the header of the zone has the same value: chains point to themselves, or out of the cache. */
START_TEST(overwritten_cache_recovers)
{
    static const uint64_t values[] = {1, 7, 8, 9, 64, 1000, SESSION_CACHE_MIN, 0x7ffffffffffffff8, UINT64_MAX - 7,
                                      UINT64_MAX};
    struct log log = {.level = LOG_ALERT, .sink = count_line};
    struct named_session_cache named = {.name = STR("one")}, *items[] = {&named};
    uint64_t *from, *to;

    open_cache(SESSION_CACHE_MIN);
    named.cache = cache;
    session_caches_set_log(&(struct session_caches){items, 1}, &log);
    insert_session(1, 100, 0, 1000);
    ck_assert_uint_eq(logged, 0);
    from = (uint64_t *)(void *)((struct shared_zone *)cache + 1);
    to = (uint64_t *)(void *)((char *)cache + SESSION_CACHE_MIN);
    while (from < to)
        *from++ = values[_i];
    ck_assert_uint_eq(session_cache_get(cache, id_of(1), 0, into), 0);
    session_cache_remove(cache, id_of(1));
    fill_and_check();
    ck_assert_uint_ge(logged, 1);
    session_cache_destroy(cache);
}
END_TEST

/* A cache of the same name and size remains across a reload. */
START_TEST(caches_survive_a_reload)
{
    struct log log = {0};
    struct named_session_cache first[] = {{STR("a"), 65536}, {STR("b"), 65536}},
                         second[] = {{STR("b"), 65536}, {STR("a"), 40000}};
    struct named_session_cache *before[] = {&first[0], &first[1]}, *after[] = {&second[0], &second[1]};
    struct session_caches old = {before, 2}, new = {after, 2};

    ck_assert_int_eq(session_caches_open(&old, NULL, &log), 0);
    cache = first[1].cache;
    insert_session(1, 100, 0, 1000);
    ck_assert_int_eq(session_caches_open(&new, &old, &log), 0);
    ck_assert_ptr_eq(second[0].cache, first[1].cache);
    ck_assert_ptr_ne(second[1].cache, first[0].cache);
    session_caches_close(&old);
    session_caches_close(&old);
    ck_assert(session_is_found(1, 100, 0));
    session_caches_close(&new);
    ck_assert_ptr_null(second[0].cache);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, stored_found_and_removed);
    tcase_add_test(tcase, invalid_sessions_are_rejected);
    tcase_add_test(tcase, session_expires_at_its_own_time);
    tcase_add_loop_test(tcase, oldest_session_is_replaced, 0, 12);
    tcase_add_test(tcase, sessions_are_shared_by_all_processes);
    tcase_add_test(tcase, death_with_the_lock_empties_the_cache);
    tcase_add_test(tcase, cache_of_the_master_withstands_overwriting);
    tcase_add_loop_test(tcase, forged_length_is_not_copied, 0, 4);
    tcase_add_loop_test(tcase, forged_fields_lose_sessions_only, 0, 7);
    tcase_add_loop_test(tcase, overwritten_cache_recovers, 0, 10);
    tcase_add_test(tcase, caches_survive_a_reload);
}

int main(void)
{
    return run_suite("session_cache", add_tests);
}
