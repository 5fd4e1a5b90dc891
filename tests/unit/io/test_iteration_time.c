/*
 * How long one iteration of the loop moves bytes (rule 7 of io/loop.h). This bounds the delay of a small response. The
 * loop reads the time of a clock that the tests move.
 */
#include "fixture.h"

#include "base/limits.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop loop;

/* The time that the loop measures, and how long each call takes in it. */
static uint64_t now_us, call_us, done_us;

uint64_t __wrap_clock_monotonic_us(void);
ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __real_sendfile64(int to, int from, off64_t *at, size_t length);
ssize_t __wrap_sendfile64(int to, int from, off64_t *at, size_t length);
ssize_t __real_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);

uint64_t __wrap_clock_monotonic_us(void)
{
    return now_us;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags)
{
    now_us += call_us;
    return __real_send(fd, bytes, length, flags);
}

ssize_t __wrap_sendfile64(int to, int from, off64_t *at, size_t length)
{
    now_us += call_us;
    return __real_sendfile64(to, from, at, length);
}

static atomic_int reads_made;

ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags)
{
    ssize_t result = __real_preadv64v2(fd, parts, count, at, flags);

    atomic_fetch_add(&reads_made, 1);
    return result;
}

static void set_costs(uint64_t of_call_us, uint64_t of_done_us)
{
    call_us = of_call_us;
    done_us = of_done_us;
}

enum { SENDERS = 40, SENT = 32 * 1024, SENDFILES = 6 };

/* Large sends of one owner each, whose `done` takes done_us. */
struct senders {
    struct probe probes[SENDERS];
    int local[SENDERS];
    int peer[SENDERS];
};

static void advance_time(struct probe *probe)
{
    now_us += done_us;
}

static void senders_start(struct senders *senders, bool pages)
{
    static char bytes[SENT];
    static const struct iovec large = {bytes, SENT};

    for (int i = 0; i < SENDERS; i++) {
        unix_pair(&loop, &senders->local[i], &senders->peer[i]);
        probe_init(&senders->probes[i], &loop);
        senders->probes[i].then = advance_time;
        (pages ? loop_send_pages : loop_send)(&loop, &senders->probes[i].op, senders->local[i], &large, 1, 0);
    }
}

static void senders_finish(struct senders *senders)
{
    while (loop.in_flight > 0)
        turn_some(&loop, 1);
    for (int i = 0; i < SENDERS; i++) {
        peer_close(senders->peer[i]);
        loop_close_fd(&loop, senders->local[i]);
    }
    loop_close(&loop);
}

static int runs_of(const struct probe *probes, int count)
{
    int runs = 0;

    for (int i = 0; i < count; i++)
        runs += probes[i].runs;
    return runs;
}

static int senders_done(const struct senders *senders)
{
    return runs_of(senders->probes, SENDERS);
}

/*
 * An iteration continues large sends until their time has passed, which is checked after each one: at least one
 * proceeds. While no time passes, the bytes are the limit; those of mapped files use less of it.
 */
START_TEST(rule_7_large_sends_end_by_time)
{
    static const struct {
        uint64_t done_us;
        int runs;
        bool pages;
    } rows[] = {
        {0, LIMIT_ITERATION_BYTES / SENT},
        {0, SENDERS, true}, /* fewer than LIMIT_ITERATION_FILE_BYTES */
        {LIMIT_ITERATION_US / 2, 2, true},
        {LIMIT_ITERATION_US / 2 - 1, 3},
        {LIMIT_ITERATION_US / 2, 2},
        {LIMIT_ITERATION_US - 1, 2},
        {LIMIT_ITERATION_US, 1},
        {100 * LIMIT_ITERATION_US, 1},
    };
    static struct senders senders;

    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        if (!open_loop(&loop, _i))
            return;
        set_costs(0, rows[row].done_us);
        senders_start(&senders, rows[row].pages);
        for (int turn = 1; turn <= 3; turn++) {
            int expected = turn * rows[row].runs;

            turn_some(&loop, 1);
            ck_assert_int_eq(senders_done(&senders), expected < SENDERS ? expected : SENDERS);
        }
        senders_finish(&senders);
    }
}
END_TEST

static void advance_after_done(struct loop *of)
{
    now_us += LIMIT_ITERATION_US;
}

/* What the owner of the loop continues after each `done` uses the same time. */
START_TEST(rule_7_owner_of_the_loop_shares_the_time)
{
    static struct senders senders;

    if (!open_loop(&loop, _i))
        return;
    loop.large_done = advance_after_done;
    set_costs(0, 0);
    senders_start(&senders, false);
    for (int turn = 1; turn <= SENDERS; turn++) {
        turn_some(&loop, 1);
        ck_assert_int_eq(senders_done(&senders), turn);
    }
    senders_finish(&senders);
}
END_TEST

/* Sockets with room again: their sends share the time of the iteration, too. */
START_TEST(rule_7_woken_sends_end_by_time)
{
    static struct senders senders;
    static char bytes[SENT];
    const struct iovec large = {bytes, SENT};
    size_t before, after = 0;

    if (!open_loop(&loop, _i))
        return;
    set_costs(0, 0);
    senders_start(&senders, false);
    while (senders_done(&senders) < SENDERS)
        turn_some(&loop, 1);
    for (int i = 0; i < SENDERS; i++) { /* until every socket is full */
        while (op_idle(&senders.probes[i].op)) {
            loop_send(&loop, &senders.probes[i].op, senders.local[i], &large, 1, 0);
            turn_some(&loop, 2);
        }
    }
    turn_some(&loop, 3);
    before = (size_t)senders_done(&senders);
    for (int i = 0; i < SENDERS; i++) {
        while (recv(senders.peer[i], bytes, SENT, MSG_DONTWAIT) > 0)
            ;
    }
    set_costs(LIMIT_ITERATION_US, 0);
    turn_some(&loop, 1);
    for (int i = 0; i < SENDERS; i++)
        after += peer_pending(senders.peer[i]);
    ck_assert_uint_gt(after, 0);
    ck_assert_uint_le(after, SENT);
    set_costs(0, 0);
    for (int turn = 0; turn < SENDERS && (size_t)senders_done(&senders) < before + SENDERS; turn++)
        turn_some(&loop, 1);
    ck_assert_uint_eq((size_t)senders_done(&senders), before + SENDERS);
    senders_finish(&senders);
}
END_TEST

/* Files share the time as they share the bytes. */
START_TEST(rule_7_files_end_by_time)
{
    int file = pattern_file(8 * 4096);
    int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct probe probes[SENDFILES];

    if (!open_loop(&loop, _i))
        return;
    set_costs(LIMIT_ITERATION_US / 2, 0);
    for (int i = 0; i < SENDFILES; i++) {
        probe_init(&probes[i], &loop);
        loop_sendfile(&loop, &probes[i].op, sink, file, 0, 8 * 4096, false);
    }
    for (int sent = 2; sent <= SENDFILES; sent += 2) { /* the first two were sent before the first iteration */
        for (int i = 0; i < SENDFILES; i++)
            ck_assert_uint_eq(probes[i].op.file.progress, i < sent ? 8 * 4096 : 0);
        turn_some(&loop, 1);
    }
    for (int i = 0; i < SENDFILES; i++)
        ck_assert_int_eq(probes[i].runs, 1);
    close(file);
    loop_close_fd(&loop, sink);
    loop_close(&loop);
}
END_TEST

enum { RECEIVERS = 40 };

static void received_bytes_used(struct probe *probe)
{
    ck_assert_int_eq(probe->result, LIMIT_RECEIVE_LARGE);
    now_us += done_us;
}

static void receive_large_from_all(int runs_per_iteration)
{
    static char bytes[LIMIT_RECEIVE_LARGE];
    static struct probe probes[RECEIVERS];
    struct probe modest;
    int local[RECEIVERS + 1], peer[RECEIVERS + 1];

    for (int i = 0; i <= RECEIVERS; i++)
        unix_pair(&loop, &local[i], &peer[i]);
    for (int i = 0; i < RECEIVERS; i++) {
        probe_init(&probes[i], &loop);
        probes[i].then = received_bytes_used;
        loop_recv_large(&loop, &probes[i].op, local[i]);
        peer_send_bytes(peer[i], bytes, sizeof(bytes));
    }
    probe_init(&modest, &loop);
    loop_recv(&loop, &modest.op, local[RECEIVERS]);
    peer_send(peer[RECEIVERS], "x");
    for (int due = runs_per_iteration; due < RECEIVERS + runs_per_iteration; due += runs_per_iteration) {
        turn_some(&loop, 1);
        ck_assert_int_eq(modest.runs, 1);
        ck_assert_int_eq(runs_of(probes, RECEIVERS), due < RECEIVERS ? due : RECEIVERS);
    }
    for (int i = 0; i <= RECEIVERS; i++) {
        peer_close(peer[i]);
        loop_close_fd(&loop, local[i]);
    }
}

/* Large receives share the bytes and the time of an iteration with what their owners do. A small one does not wait. */
START_TEST(rule_7_large_receives_share_an_iteration)
{
    static const struct {
        uint64_t done_us;
        int runs;
        void (*large_done)(struct loop *loop);
    } rows[] = {
        {0, LIMIT_ITERATION_FILE_BYTES / LIMIT_RECEIVE_LARGE},
        {LIMIT_ITERATION_US / 2, 2},
        {LIMIT_ITERATION_US, 1},
        {0, 1, advance_after_done},
    };

    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        if (!open_loop(&loop, _i))
            return;
        loop.large_done = rows[row].large_done;
        set_costs(0, rows[row].done_us);
        receive_large_from_all(rows[row].runs);
        loop_close(&loop);
    }
}
END_TEST

enum { READS = 20 };

/* The owners of bytes that helper threads have read take turns, too. */
START_TEST(rule_7_reads_end_by_time)
{
    static struct probe probes[READS];
    char bytes[READS];
    int file = pattern_file(READS);

    if (!open_loop(&loop, _i))
        return;
    set_costs(0, LIMIT_ITERATION_US);
    atomic_store(&reads_made, 0);
    for (int i = 0; i < READS; i++) {
        probe_init(&probes[i], &loop);
        probes[i].then = advance_time;
        loop_read(&loop, &probes[i].op, file, i, bytes + i, 1, 0);
    }
    while (atomic_load(&reads_made) < READS)
        usleep(1000);
    for (int before = 0, runs; before < READS; before = runs) {
        turn_some(&loop, 1);
        runs = runs_of(probes, READS);
        ck_assert_int_le(runs, before + 1);
    }
    close(file);
    loop_close(&loop);
}
END_TEST

/* So do the owners of sockets that have room again, while those of other polls do not wait. */
START_TEST(rule_7_polls_for_room_end_by_time)
{
    static struct probe probes[SENDERS];
    struct probe other;
    int local[SENDERS], peer[SENDERS];

    if (!open_loop(&loop, _i))
        return;
    set_costs(0, LIMIT_ITERATION_US);
    for (int i = 0; i < SENDERS; i++) {
        unix_pair(&loop, &local[i], &peer[i]);
        probe_init(&probes[i], &loop);
        probes[i].then = advance_time;
        loop_poll(&loop, &probes[i].op, local[i], POLLOUT);
    }
    probe_init(&other, &loop);
    loop_poll(&loop, &other.op, local[0], POLLIN);
    peer_send(peer[0], "x");
    for (int turn = 1; turn <= SENDERS; turn++) {
        turn_some(&loop, 1);
        ck_assert_int_eq(runs_of(probes, SENDERS), turn);
        ck_assert_int_eq(other.runs, 1);
    }
    for (int i = 0; i < SENDERS; i++) {
        peer_close(peer[i]);
        loop_close_fd(&loop, local[i]);
    }
    loop_close(&loop);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("iteration_time");
    TCase *group = tcase_create("turns");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(group, 60);
    tcase_add_loop_test(group, rule_7_large_sends_end_by_time, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_7_owner_of_the_loop_shares_the_time, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_7_woken_sends_end_by_time, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_7_files_end_by_time, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_7_large_receives_share_an_iteration, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_7_reads_end_by_time, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_7_polls_for_room_end_by_time, 0, kernel_backend_count());
    suite_add_tcase(suite, group);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
