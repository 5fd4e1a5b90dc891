/*
 * How many bytes one iteration of the loop moves, and in which order (rule 7 of io/loop.h; kernel TLS, rule 17). This
 * bounds the delay of a small response. In these tests no time passes for the loop.
 */
#include "fixture.h"

#include "base/limits.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop loop;

uint64_t __wrap_clock_monotonic_us(void);

uint64_t __wrap_clock_monotonic_us(void)
{
    return 0;
}

enum { SENDFILES = 6 };

/* Rule 7: all files together move no more per iteration than a single one may, and every file proceeds. */
START_TEST(rule_17_files_share_an_iteration)
{
    struct probe probes[SENDFILES];
    struct probe modest;
    int file = pattern_file(4 * LIMIT_ITERATION_FILE_BYTES);
    int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    uint64_t before = LIMIT_ITERATION_FILE_BYTES;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&modest, &loop);
    unix_pair(&loop, &local, &peer);
    for (int i = 0; i < SENDFILES; i++) {
        probe_init(&probes[i], &loop);
        loop_sendfile(&loop, &probes[i].op, sink, file, 0, 4 * LIMIT_ITERATION_FILE_BYTES, false);
    }
    loop_recv(&loop, &modest.op, local);
    peer_send(peer, "x");
    for (int turn = 1; turn < 3 * SENDFILES; turn++) {
        uint64_t min = UINT64_MAX;
        uint64_t max = 0;
        uint64_t sum = 0;

        turn_some(&loop, 1);
        ck_assert_int_eq(modest.runs, 1);
        for (int i = 0; i < SENDFILES; i++) {
            uint64_t progress = probes[i].op.file.progress;

            sum += progress;
            min = progress < min ? progress : min;
            max = progress > max ? progress : max;
        }
        ck_assert_uint_le(sum - before, LIMIT_ITERATION_FILE_BYTES);
        ck_assert_uint_gt(sum, before);
        ck_assert_uint_le(max - min, 2 * LIMIT_ITERATION_FILE_BYTES);
        before = sum;
    }
    for (int i = 0; i < SENDFILES; i++) {
        run_until_done(&probes[i], 1);
        ck_assert_int_eq(probes[i].result, 4 * LIMIT_ITERATION_FILE_BYTES);
    }
    peer_close(peer);
    close(file);
    loop_close_fd(&loop, sink);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

enum { SENDERS = 40, SENT = 32 * 1024 };

/*
 * Large sends start at once. The next sends of their owners wait until an iteration has room for them; small sends do
 * not wait.
 */
START_TEST(rule_17_large_sends_take_turns)
{
    static struct probe senders[SENDERS];
    static char bytes[SENT];
    const struct iovec large = {bytes, SENT};
    const struct iovec small = {bytes, 1000};
    int local[SENDERS + 1];
    int peer[SENDERS + 1];
    struct probe modest;
    int runs = 0;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&modest, &loop);
    for (int i = 0; i <= SENDERS; i++)
        unix_pair(&loop, &local[i], &peer[i]);
    for (int i = 0; i < SENDERS; i++) {
        probe_init(&senders[i], &loop);
        loop_send(&loop, &senders[i].op, local[i], &large, 1, 0);
    }
    loop_send(&loop, &modest.op, local[SENDERS], &small, 1, 0);
    while (runs < SENDERS) {
        int before = runs;

        turn_some(&loop, 1);
        while (runs < SENDERS && senders[runs].runs == 1)
            runs++;
        for (int i = runs; i < SENDERS; i++)
            ck_assert_int_eq(senders[i].runs, 0); /* in FIFO order */
        ck_assert_int_gt(runs, before);
        ck_assert_int_le(runs - before, 2 * LIMIT_ITERATION_BYTES / SENT);
        ck_assert_int_eq(modest.runs, 1);
    }
    for (int i = 0; i <= SENDERS; i++) {
        peer_close(peer[i]);
        loop_close_fd(&loop, local[i]);
    }
    loop_close(&loop);
}
END_TEST

/* For the next test: a small send responds to a request; the owners of large sends check whether it is complete. */
static struct op request, response;
static struct op owners[SENDERS];
static int response_fd, response_peer, owners_after;

static void response_sent(struct op *op, int result)
{
    ck_assert_int_eq(result, 1);
}

static void request_received(struct op *op, int result)
{
    static const struct iovec word = {(void *)(uintptr_t)"a", 1};

    ck_assert_int_eq(result, 1);
    response.done = response_sent;
    loop_send(&loop, &response, response_fd, &word, 1, 0);
}

static void owner_sends_next(struct op *op, int result)
{
    char seen;

    if (request.state != OP_STATE_IDLE)
        return;
    ck_assert_msg(owners_after > 0 || recv(response_peer, &seen, 1, MSG_DONTWAIT) == 1, "the response is not sent yet");
    owners_after++;
}

/* A small response is sent before the large sends continue in the same iteration. */
START_TEST(rule_17_small_responses_precede_large_sends)
{
    static char bytes[SENT];
    const struct iovec large = {bytes, SENT};
    int local[SENDERS];
    int peer[SENDERS];

    if (!open_loop(&loop, _i))
        return;
    owners_after = 0;
    unix_pair(&loop, &response_fd, &response_peer);
    request = (struct op){.done = request_received};
    loop_recv(&loop, &request, response_fd);
    for (int i = 0; i < SENDERS; i++) {
        unix_pair(&loop, &local[i], &peer[i]);
        owners[i] = (struct op){.done = owner_sends_next};
        loop_send(&loop, &owners[i], local[i], &large, 1, 0);
    }
    turn_some(&loop, 1);
    peer_send(response_peer, "x");
    for (int turn = 0; turn < SENDERS && owners_after == 0; turn++)
        turn_some(&loop, 1);
    ck_assert_int_gt(owners_after, 0);
    while (loop.in_flight > 0)
        turn_some(&loop, 1);
    for (int i = 0; i < SENDERS; i++) {
        peer_close(peer[i]);
        loop_close_fd(&loop, local[i]);
    }
    peer_close(response_peer);
    loop_close_fd(&loop, response_fd);
    loop_close(&loop);
}
END_TEST

/* A small response is also sent before a file whose turn it is. One socket receives both, which shows the order. */
START_TEST(rule_17_small_responses_precede_files)
{
    int file = pattern_file(2 * LIMIT_ITERATION_FILE_BYTES);
    struct probe waiting;
    struct probe large;
    int other, sink;
    char first;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&waiting, &loop);
    probe_init(&large, &loop);
    unix_pair(&loop, &response_fd, &response_peer);
    other = dup(response_fd);
    sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    request = (struct op){.done = request_received};
    loop_recv(&loop, &request, response_fd);
    loop_sendfile(&loop, &waiting.op, sink, file, 0, 2 * LIMIT_ITERATION_FILE_BYTES, false);
    turn_some(&loop, 1);
    loop_sendfile(&loop, &large.op, other, file, 1, 1, false);
    peer_send(response_peer, "x");
    while (waiting.runs == 0 || large.runs == 0 || !op_idle(&response))
        turn_some(&loop, 1);
    ck_assert_int_eq(recv(response_peer, &first, 1, 0), 1);
    ck_assert_int_eq(first, 'a');
    ck_assert_int_eq(recv(response_peer, &first, 1, 0), 1);
    peer_close(response_peer);
    close(file);
    loop_close_fd(&loop, sink);
    loop_close_fd(&loop, other);
    loop_close_fd(&loop, response_fd);
    loop_close(&loop);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("iterations");
    TCase *group = tcase_create("turns");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(group, 60);
    tcase_add_loop_test(group, rule_17_files_share_an_iteration, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_large_sends_take_turns, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_small_responses_precede_large_sends, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_small_responses_precede_files, 0, kernel_backend_count());
    suite_add_tcase(suite, group);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
