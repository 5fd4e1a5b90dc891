/* The lock of shared memory: several processes and threads wait for it, die with it, or do not release it. */
#include "base/shared_zone.h"

#include "../runner.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct notes {
    struct shared_zone shared;
    unsigned count;
};

static void add_one(struct notes *notes)
{
    for (int i = 0; i < 1000; i++) {
        if (shared_zone_lock(&notes->shared))
            _exit(1);
        notes->count++;
        shared_zone_unlock(&notes->shared);
    }
}

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

/* Of several processes that wait for such a lock, one takes it over, and the others wait for that process. */
START_TEST(one_of_several_waiting_processes_takes_a_lock_over)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));
    pid_t children[6];
    int taken_over = 0;
    int status;

    notes->shared.lock.word = 1;
    for (size_t i = 0; i < 6; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            bool broken = shared_zone_lock(&notes->shared);

            notes->count++;
            shared_zone_unlock(&notes->shared);
            add_one(notes);
            _exit(broken ? 2 : 0);
        }
    }
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 1);
        taken_over += WEXITSTATUS(status) == 2;
    }
    ck_assert_int_eq(taken_over, 1);
    ck_assert_uint_eq(notes->count, 6006);
    shared_zone_destroy(&notes->shared);
}
END_TEST

/* A process that is stopped while it holds the lock blocks no other, also after it continues and releases it. */
START_TEST(lock_of_a_stopped_process_is_taken_over)
{
    struct notes *notes = shared_zone_create(sizeof(*notes));
    pid_t child = fork();
    int status;

    if (child == 0) {
        (void)shared_zone_lock(&notes->shared);
        raise(SIGSTOP);
        shared_zone_unlock(&notes->shared);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
    ck_assert(WIFSTOPPED(status));
    ck_assert(shared_zone_lock(&notes->shared));
    shared_zone_unlock(&notes->shared);
    (void)shared_zone_lock(&notes->shared);
    ck_assert_int_eq(kill(child, SIGCONT), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    shared_zone_unlock(&notes->shared);
    ck_assert(!shared_zone_lock(&notes->shared));
    shared_zone_unlock(&notes->shared);
    shared_zone_destroy(&notes->shared);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        several_locks_of_a_dead_process,
        waiting_processes_continue,
        threads_exclude_each_other,
        one_of_several_waiting_processes_takes_a_lock_over,
        lock_of_a_stopped_process_is_taken_over,
        NULL,
    };

    return run_tests("shared_lock", tests);
}
