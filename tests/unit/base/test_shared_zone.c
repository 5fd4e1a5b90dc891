/* Shared memory: all processes see each write, and a process that dies with the lock does not block the others. */
#include "base/shared_zone.h"

#include "../overwrite.h"
#include "../skip.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct notes {
    struct shared_zone shared;
    unsigned count;
    char rest[10000];
};

/* Runs the function in a child process, which exits without releasing the locks that it holds. */
static void run_in_child(struct notes *notes, void (*what)(struct notes *notes))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        what(notes);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static void add_one(struct notes *notes)
{
    for (int i = 0; i < 1000; i++) {
        if (shared_zone_lock(&notes->shared))
            _exit(1);
        notes->count++;
        shared_zone_unlock(&notes->shared);
    }
}

static void die_with_the_lock(struct notes *notes)
{
    (void)shared_zone_lock(&notes->shared);
    notes->count = 7;
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

static unsigned removed[8];
static unsigned removed_count, emptied, rebuilt;

static void empty_notes(struct shared_zone *zone)
{
    ck_assert_uint_eq(removed_count, 0);
    zone->damaged = 0;
    emptied++;
}

static void rebuild_notes(struct shared_zone *zone)
{
    ck_assert_uint_eq(removed_count, 0);
    rebuilt++;
}

static void remove_place(struct shared_zone *zone, unsigned place)
{
    ck_assert_uint_lt(removed_count, 8);
    removed[removed_count++] = place;
}

static void lock_and_repair(struct notes *notes)
{
    static const struct shared_zone_repair repair = {empty_notes, rebuild_notes, remove_place};

    removed_count = emptied = rebuilt = 0;
    shared_zone_lock_repaired(&notes->shared, &repair);
    shared_zone_unlock(&notes->shared);
}

START_TEST(abandoned_places_are_cleaned_once)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));

    lock_and_repair(notes);
    ck_assert_uint_eq(removed_count, 0);
    shared_zone_abandon(&notes->shared, 0);
    shared_zone_abandon(&notes->shared, 63);
    shared_zone_abandon(&notes->shared, 64);
    shared_zone_abandon(&notes->shared, LIMIT_WORKERS - 1);
    shared_zone_abandon(&notes->shared, 64);
    ck_assert(shared_zone_has_abandoned(&notes->shared));
    lock_and_repair(notes);
    ck_assert_uint_eq(removed_count, 4);
    ck_assert(removed[0] == 0 && removed[1] == 63 && removed[2] == 64 && removed[3] == LIMIT_WORKERS - 1);
    ck_assert(!shared_zone_has_abandoned(&notes->shared));
    lock_and_repair(notes);
    ck_assert_uint_eq(removed_count, 0);
    shared_zone_destroy(&notes->shared);
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

static void exit_now(struct shared_zone *zone, unsigned place)
{
    _exit(0);
}

static void die_while_removing(struct notes *notes)
{
    static const struct shared_zone_repair repair = {empty_notes, rebuild_notes, exit_now};

    shared_zone_lock_repaired(&notes->shared, &repair);
}

START_TEST(removal_is_repeated_after_a_death)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));

    NEEDS_ROBUST_FUTEXES();
    shared_zone_abandon(&notes->shared, 5);
    run_in_child(notes, die_while_removing);
    lock_and_repair(notes);
    ck_assert_uint_eq(removed_count, 1);
    ck_assert_uint_eq(removed[0], 5);
    shared_zone_destroy(&notes->shared);
}
END_TEST

/* The creator waits for no other process: here, one that is stopped while it holds the lock. */
START_TEST(creator_takes_no_lock)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));
    pid_t child = fork();
    int status;

    NEEDS_ROBUST_FUTEXES();
    if (child == 0) {
        (void)shared_zone_lock(&notes->shared);
        raise(SIGSTOP);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
    ck_assert(WIFSTOPPED(status));
    shared_zone_share(&notes->shared);
    shared_zone_abandon(&notes->shared, 1);
    shared_zone_destroy(&notes->shared);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    lock_and_repair(notes);
    ck_assert_uint_eq(removed_count, 1);
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

static struct {
    char text[2000];
    unsigned lines;
} logged;

static void keep_line(void *owner, enum log_level level, struct str line)
{
    ck_assert_int_eq(level, LOG_ALERT);
    snprintf(logged.text, sizeof(logged.text), STR_FMT, STR_ARG(line));
    logged.lines++;
}

START_TEST(damage_is_logged_once_per_second)
{
    struct log log = {.level = LOG_ALERT, .sink = keep_line};
    struct notes *notes = shared_zone_create(sizeof(*notes)), *other = shared_zone_create(sizeof(*other));
    char long_name[200];

    shared_zone_log_damage(&notes->shared);
    shared_zone_set_log(&notes->shared, &log, "limit_req", STR("one"));
    overwrite_shared_memory(-1);
    ck_assert_uint_eq(logged.lines, 0);
    for (int i = 0; i < 1000; i++)
        shared_zone_log_damage(&notes->shared);
    ck_assert_uint_ge(logged.lines, 1);
    ck_assert_uint_lt(logged.lines, 100);
    ck_assert_ptr_nonnull(strstr(logged.text,
                                    ": limit_req \"one\": its shared memory is inconsistent and is emptied\n"));
    logged.lines = 0;
    memset(long_name, 'x', sizeof(long_name));
    shared_zone_set_log(&other->shared, &log, "cache", str_of(long_name, sizeof(long_name)));
    shared_zone_log_damage(&other->shared);
    ck_assert_uint_eq(logged.lines, 1); /* each zone has its own limit */
    ck_assert_ptr_nonnull(strstr(logged.text, ": cache \"xxxxxxxxxx"));
    shared_zone_destroy(&notes->shared);
    shared_zone_destroy(&other->shared);
}
END_TEST

static void damage_and_die(struct notes *notes)
{
    die_with_the_lock(notes);
    notes->shared.damaged = 1;
}

/* A damaged zone is emptied, also after a death; a zone of a dead holder is rebuilt; both before slots are removed. */
START_TEST(contents_are_repaired_with_the_lock)
{
    struct log log = {.level = LOG_ALERT, .sink = keep_line};
    struct notes *notes = shared_zone_create(sizeof(*notes));

    shared_zone_set_log(&notes->shared, &log, "limit_req", STR("one"));
    lock_and_repair(notes);
    ck_assert(emptied == 0 && rebuilt == 0 && removed_count == 0);
    shared_zone_abandon(&notes->shared, 3);
    notes->shared.damaged = 1;
    lock_and_repair(notes);
    ck_assert(emptied == 1 && rebuilt == 0 && removed_count == 1);
    ck_assert_uint_eq(logged.lines, 1);
    lock_and_repair(notes);
    ck_assert(emptied == 0 && rebuilt == 0 && removed_count == 0);
    NEEDS_ROBUST_FUTEXES();
    shared_zone_abandon(&notes->shared, 3);
    run_in_child(notes, die_with_the_lock);
    lock_and_repair(notes);
    ck_assert(emptied == 0 && rebuilt == 1 && removed_count == 1);
    run_in_child(notes, damage_and_die);
    lock_and_repair(notes);
    ck_assert(emptied == 1 && rebuilt == 0 && removed_count == 0);
    shared_zone_destroy(&notes->shared);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shared_zone");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(all, 60);
    tcase_add_test(all, invalid_sizes_are_rejected);
    tcase_add_test(all, other_processes_see_writes);
    tcase_add_test(all, death_with_the_lock_is_reported_once);
    tcase_add_test(all, last_reference_frees_the_zone);
    tcase_add_test(all, abandoned_places_are_cleaned_once);
    tcase_add_test(all, removal_is_repeated_after_a_death);
    tcase_add_test(all, holder_withstands_overwriting);
    tcase_add_test(all, several_locks_of_a_dead_process);
    tcase_add_test(all, waiting_processes_continue);
    tcase_add_test(all, threads_exclude_each_other);
    tcase_add_test(all, creator_takes_no_lock);
    tcase_add_test(all, zone_of_the_master_withstands_overwriting);
    tcase_add_test(all, damage_is_logged_once_per_second);
    tcase_add_test(all, contents_are_repaired_with_the_lock);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
