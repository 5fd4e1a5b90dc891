/*
 * How many bytes one iteration of the loop moves, and in which order (rule 7 of io/loop.h; kernel TLS, rule 17). This
 * bounds the delay of a small response.
 */
#include "fixture.h"

#include "base/limits.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop loop;

enum { SENDFILES = 6 };

/* Rule 7: all files together move no more per iteration than a single one may, and every file proceeds. */
START_TEST(rule_17_files_share_an_iteration)
{
    struct probe probes[SENDFILES];
    struct probe modest;
    int file = pattern_file(4 * LIMIT_ITERATION_FILE_BYTES);
    int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    uint64_t before = LIMIT_ITERATION_FILE_BYTES;
    int near;
    int far;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&modest, &loop);
    unix_pair(&loop, &near, &far);
    for (int i = 0; i < SENDFILES; i++) {
        probe_init(&probes[i], &loop);
        loop_sendfile(&loop, &probes[i].op, sink, file, 0, 4 * LIMIT_ITERATION_FILE_BYTES, false);
    }
    loop_recv(&loop, &modest.op, near);
    say(far, "x");
    for (int turn = 1; turn < 3 * SENDFILES; turn++) {
        uint64_t least = UINT64_MAX;
        uint64_t most = 0;
        uint64_t sum = 0;

        turn_some(&loop, 1);
        ck_assert_int_eq(modest.runs, 1);
        for (int i = 0; i < SENDFILES; i++) {
            uint64_t progress = probes[i].op.file.progress;

            sum += progress;
            least = progress < least ? progress : least;
            most = progress > most ? progress : most;
        }
        ck_assert_uint_le(sum - before, LIMIT_ITERATION_FILE_BYTES);
        ck_assert_uint_gt(sum, before);
        ck_assert_uint_le(most - least, 2 * LIMIT_ITERATION_FILE_BYTES);
        before = sum;
    }
    for (int i = 0; i < SENDFILES; i++) {
        run_until_done(&probes[i], 1);
        ck_assert_int_eq(probes[i].result, 4 * LIMIT_ITERATION_FILE_BYTES);
    }
    far_close(far);
    close(file);
    loop_close_fd(&loop, sink);
    loop_close_fd(&loop, near);
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
    int near[SENDERS + 1];
    int far[SENDERS + 1];
    struct probe modest;
    int runs = 0;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&modest, &loop);
    for (int i = 0; i <= SENDERS; i++)
        unix_pair(&loop, &near[i], &far[i]);
    for (int i = 0; i < SENDERS; i++) {
        probe_init(&senders[i], &loop);
        loop_send(&loop, &senders[i].op, near[i], &large, 1, 0);
    }
    loop_send(&loop, &modest.op, near[SENDERS], &small, 1, 0);
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
        far_close(far[i]);
        loop_close_fd(&loop, near[i]);
    }
    loop_close(&loop);
}
END_TEST

/* For the next test: a small send responds to a request; the owners of large sends check whether it is complete. */
static struct op request, answer;
static struct op owners[SENDERS];
static int answered_at, far_end, owners_after;

static void answer_left(struct op *op, int result)
{
    ck_assert_int_eq(result, 1);
}

static void request_came(struct op *op, int result)
{
    static const struct iovec word = {(void *)(uintptr_t)"a", 1};

    ck_assert_int_eq(result, 1);
    answer.done = answer_left;
    loop_send(&loop, &answer, answered_at, &word, 1, 0);
}

static void owner_goes_on(struct op *op, int result)
{
    char seen;

    if (request.state != OP_STATE_IDLE)
        return;
    ck_assert_msg(owners_after > 0 || recv(far_end, &seen, 1, MSG_DONTWAIT) == 1, "the answer is still to leave");
    owners_after++;
}

/* A small response is sent before the large sends continue in the same iteration. */
START_TEST(rule_17_small_answers_leave_first)
{
    static char bytes[SENT];
    const struct iovec large = {bytes, SENT};
    int near[SENDERS];
    int far[SENDERS];

    if (!open_loop(&loop, _i))
        return;
    owners_after = 0;
    unix_pair(&loop, &answered_at, &far_end);
    request = (struct op){.done = request_came};
    loop_recv(&loop, &request, answered_at);
    for (int i = 0; i < SENDERS; i++) {
        unix_pair(&loop, &near[i], &far[i]);
        owners[i] = (struct op){.done = owner_goes_on};
        loop_send(&loop, &owners[i], near[i], &large, 1, 0);
    }
    turn_some(&loop, 1);
    say(far_end, "x");
    for (int turn = 0; turn < SENDERS && owners_after == 0; turn++)
        turn_some(&loop, 1);
    ck_assert_int_gt(owners_after, 0);
    while (loop.in_flight > 0)
        turn_some(&loop, 1);
    for (int i = 0; i < SENDERS; i++) {
        far_close(far[i]);
        loop_close_fd(&loop, near[i]);
    }
    far_close(far_end);
    loop_close_fd(&loop, answered_at);
    loop_close(&loop);
}
END_TEST

/* A small response is also sent before a file whose turn it is. One socket receives both, which shows the order. */
START_TEST(rule_17_small_answers_leave_before_files)
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
    unix_pair(&loop, &answered_at, &far_end);
    other = dup(answered_at);
    sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    request = (struct op){.done = request_came};
    loop_recv(&loop, &request, answered_at);
    loop_sendfile(&loop, &waiting.op, sink, file, 0, 2 * LIMIT_ITERATION_FILE_BYTES, false);
    turn_some(&loop, 1);
    loop_sendfile(&loop, &large.op, other, file, 1, 1, false);
    say(far_end, "x");
    while (waiting.runs == 0 || large.runs == 0 || !op_idle(&answer))
        turn_some(&loop, 1);
    ck_assert_int_eq(recv(far_end, &first, 1, 0), 1);
    ck_assert_int_eq(first, 'a');
    ck_assert_int_eq(recv(far_end, &first, 1, 0), 1);
    far_close(far_end);
    close(file);
    loop_close_fd(&loop, sink);
    loop_close_fd(&loop, other);
    loop_close_fd(&loop, answered_at);
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
    tcase_add_loop_test(group, rule_17_small_answers_leave_first, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_small_answers_leave_before_files, 0, kernel_backend_count());
    suite_add_tcase(suite, group);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
