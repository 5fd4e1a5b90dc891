/* Repairs of shared memory: after a death with the lock, after damage, and of the places of workers that have died. */
#include "shared_zone_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, abandoned_places_are_cleaned_once);
    tcase_add_test(tcase, removal_is_repeated_after_a_death);
    tcase_add_test(tcase, creator_takes_no_lock);
    tcase_add_test(tcase, damage_is_logged_once_per_second);
    tcase_add_test(tcase, contents_are_repaired_with_the_lock);
}

int main(void)
{
    return run_suite("shared_zone_repair", add_tests);
}
