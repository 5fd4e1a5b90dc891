/* Shared memory: all processes see each write, and a process that dies with the lock does not block the others. */
#include "shared_zone_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void add_one(struct notes *notes)
{
    for (int i = 0; i < 1000; i++) {
        if (shared_zone_lock(&notes->shared))
            _exit(1);
        notes->count++;
        shared_zone_unlock(&notes->shared);
    }
}

START_TEST(invalid_sizes_are_rejected)
{
    ck_assert_ptr_null(shared_zone_create(0));
    ck_assert_ptr_null(shared_zone_create(sizeof(struct shared_zone) - 1));
    ck_assert_ptr_null(shared_zone_create(SIZE_MAX));
    ck_assert_ptr_null(shared_zone_create(SIZE_MAX / 2));
    shared_zone_destroy(NULL);
}
END_TEST

START_TEST(other_processes_see_writes)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));

    ck_assert_ptr_nonnull(notes);
    ck_assert_uint_eq(shared_zone_size(&notes->shared), sizeof(*notes));
    for (size_t i = 0; i < sizeof(notes->rest); i++)
        ck_assert_int_eq(notes->rest[i], 0);
    for (int i = 0; i < 3; i++)
        run_in_child(notes, add_one);
    ck_assert_uint_eq(notes->count, 3000);
    shared_zone_destroy(&notes->shared);
}
END_TEST

START_TEST(death_with_the_lock_is_reported_once)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));

    NEEDS_ROBUST_FUTEXES();
    for (int i = 0; i < 2; i++) {
        run_in_child(notes, die_with_the_lock);
        ck_assert(shared_zone_lock(&notes->shared));
        ck_assert_uint_eq(notes->count, 7);
        shared_zone_unlock(&notes->shared);
        ck_assert(!shared_zone_lock(&notes->shared));
        shared_zone_unlock(&notes->shared);
    }
    run_in_child(notes, die_with_the_lock); /* the second child dies while it holds the lock that it recovered */
    run_in_child(notes, die_with_the_lock);
    ck_assert(shared_zone_lock(&notes->shared));
    shared_zone_unlock(&notes->shared);
    shared_zone_destroy(&notes->shared);
}
END_TEST

static bool is_mapped(void *page)
{
    unsigned char in_core;

    return mincore(page, 1, &in_core) == 0 || errno != ENOMEM;
}

START_TEST(last_reference_frees_the_zone)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));

    shared_zone_share(&notes->shared);
    shared_zone_destroy(&notes->shared);
    ck_assert(is_mapped(notes));
    shared_zone_destroy(&notes->shared);
    ck_assert(!is_mapped(notes));
}
END_TEST

/* Another process overwrites the zone while this one holds its lock: the release uses no pointer from there. */
START_TEST(holder_withstands_overwriting)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));

    for (int byte = 0; byte < 256; byte += 51) {
        (void)shared_zone_lock(&notes->shared);
        overwrite_shared_memory(byte);
        shared_zone_unlock(&notes->shared);
        (void)shared_zone_lock(&notes->shared);
        shared_zone_unlock(&notes->shared);
    }
    shared_zone_destroy(&notes->shared);
}
END_TEST

/* A process that dies with several locks, also after it has released another one, blocks no other. */
START_TEST(several_locks_of_a_dead_process)
{
    struct notes *zones[3];
    int status;

    NEEDS_ROBUST_FUTEXES();
    for (size_t i = 0; i < 3; i++)
        zones[i] = shared_zone_create(sizeof(*zones[i]));
    for (int held = 0; held <= 3; held++) {
        pid_t child = fork();

        for (size_t i = 0; child == 0 && i < 3; i++)
            (void)shared_zone_lock(&zones[i]->shared);
        for (int i = 2; child == 0 && i >= held; i--)
            shared_zone_unlock(&zones[i]->shared);
        if (child == 0)
            _exit(0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        for (int i = 0; i < 3; i++) {
            ck_assert(shared_zone_lock(&zones[i]->shared) == (i < held));
            shared_zone_unlock(&zones[i]->shared);
        }
    }
    for (size_t i = 0; i < 3; i++)
        shared_zone_destroy(&zones[i]->shared);
}
END_TEST

/* Processes that wait for the lock get it one by one, also if processes die with it, or while they wait. */
START_TEST(waiting_processes_continue)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));
    pid_t children[6];
    int status;

    NEEDS_ROBUST_FUTEXES();
    for (unsigned round = 0; round < 40; round++) {
        for (size_t i = 0; i < 6; i++) {
            children[i] = fork();
            ck_assert_int_ge(children[i], 0);
            while (children[i] == 0) {
                (void)shared_zone_lock(&notes->shared);
                notes->count++;
                shared_zone_unlock(&notes->shared);
            }
        }
        usleep(500 + round * 97);
        for (size_t i = 0; i < 6; i++) {
            (void)shared_zone_lock(&notes->shared);
            shared_zone_unlock(&notes->shared);
            ck_assert_int_eq(kill(children[i], SIGKILL), 0);
            ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        }
    }
    ck_assert_uint_gt(notes->count, 0);
    shared_zone_destroy(&notes->shared);
}
END_TEST

static void *add_in_thread(void *argument)
{
    add_one(argument);
    return NULL;
}

/* The threads of a process, before and after a fork, exclude each other. */
START_TEST(threads_exclude_each_other)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));
    pthread_t threads[3];
    pid_t child;
    int status;

    add_one(notes);
    child = fork();
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_in_thread, notes), 0);
    add_one(notes);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    if (child == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(notes->count, 9000);
    shared_zone_destroy(&notes->shared);
}
END_TEST

START_TEST(zone_of_the_master_withstands_overwriting)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));

    for (int byte = -1; byte <= 1; byte++) {
        overwrite_shared_memory(byte);
        ck_assert_uint_eq(shared_zone_size(&notes->shared), sizeof(*notes));
        shared_zone_share(&notes->shared);
        ck_assert(shared_zone_is_shared(&notes->shared));
        shared_zone_abandon(&notes->shared, LIMIT_WORKERS - 1);
        shared_zone_destroy(&notes->shared);
        ck_assert(!shared_zone_is_shared(&notes->shared));
    }
    shared_zone_destroy(&notes->shared);
    ck_assert(!is_mapped(notes));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, invalid_sizes_are_rejected);
    tcase_add_test(tcase, other_processes_see_writes);
    tcase_add_test(tcase, death_with_the_lock_is_reported_once);
    tcase_add_test(tcase, last_reference_frees_the_zone);
    tcase_add_test(tcase, holder_withstands_overwriting);
    tcase_add_test(tcase, several_locks_of_a_dead_process);
    tcase_add_test(tcase, waiting_processes_continue);
    tcase_add_test(tcase, threads_exclude_each_other);
    tcase_add_test(tcase, zone_of_the_master_withstands_overwriting);
}

int main(void)
{
    return run_suite("shared_zone", add_tests);
}
