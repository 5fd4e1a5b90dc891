#include "tls/replay_window.h"

#include "base/limits.h"

#include "../runner.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct replay_window *seen;

static void open_memory(void)
{
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(seen != MAP_FAILED);
}

static void close_memory(void)
{
    munmap(seen, sizeof(*seen));
}

static const uint8_t *number(uint32_t mark, uint32_t bucket)
{
    static uint8_t random[32];

    memcpy(random, &mark, sizeof(mark));
    memcpy(random + sizeof(mark), &bucket, sizeof(bucket));
    return random;
}

START_TEST(value_is_added_once)
{
    seen->closed = 1;
    ck_assert(!replay_window_add(seen, number(7, 9), 1000));
    seen->closed = 0;
    ck_assert(replay_window_add(seen, number(7, 9), 1000));
    ck_assert(!replay_window_add(seen, number(7, 9), 1000));
    ck_assert(!replay_window_add(seen, number(7, 9), 900)); /* by a worker whose clock is behind */
    ck_assert(!replay_window_add(seen, number(7, 9), 1000 + LIMIT_EARLY_S * 1000));
    ck_assert(replay_window_add(seen, number(8, 9), 1000));
    ck_assert(replay_window_add(seen, number(7, 10), 1000));
    ck_assert(replay_window_add(seen, number(0, 0), 0));
    ck_assert(!replay_window_add(seen, number(0, 0), 0));
}
END_TEST

START_TEST(expired_values_make_room)
{
    for (uint32_t i = 0; i < REPLAY_SLOTS; i++)
        ck_assert(replay_window_add(seen, number(i, REPLAY_BUCKETS + 3), 5000));
    ck_assert_msg(!replay_window_add(seen, number(REPLAY_SLOTS, 3), 5000), "there is no room");
    ck_assert(replay_window_add(seen, number(REPLAY_SLOTS, 4), 5000));
    ck_assert(!replay_window_add(seen, number(REPLAY_SLOTS, 3), 5000 + LIMIT_EARLY_S * 1000));
    ck_assert(replay_window_add(seen, number(REPLAY_SLOTS, 3), 6000 + LIMIT_EARLY_S * 1000));
    ck_assert_msg(replay_window_add(seen, number(0, 3), 6000 + LIMIT_EARLY_S * 1000), "it was long ago");
}
END_TEST

/* Several workers add the same value at the same time, many times: each time exactly one of them succeeds. */
START_TEST(one_of_several_workers_succeeds)
{
    enum { WORKERS = 4, ROUNDS = 20000 };
    uint32_t *got =
        mmap(NULL, ROUNDS * sizeof(*got), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    for (int worker = 0; worker < WORKERS; worker++) {
        if (fork() != 0)
            continue;
        for (uint32_t i = 0; i < ROUNDS; i++) {
            if (replay_window_add(seen, number(i, i / 4), 1000 * (uint64_t)(1 + i / 5)))
                __atomic_fetch_add(&got[i], 1, __ATOMIC_SEQ_CST);
        }
        _exit(0);
    }
    for (int worker = 0; worker < WORKERS; worker++)
        ck_assert_int_gt(wait(NULL), 0);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        ck_assert_uint_le(got[i], 1);
        taken += got[i];
    }
    ck_assert_uint_gt(taken, ROUNDS / 2);
    munmap(got, ROUNDS * sizeof(*got));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, open_memory, close_memory);
    tcase_add_test(tcase, value_is_added_once);
    tcase_add_test(tcase, expired_values_make_room);
    tcase_add_test(tcase, one_of_several_workers_succeeds);
}

int main(void)
{
    return run_suite("replay_window", add_tests);
}
