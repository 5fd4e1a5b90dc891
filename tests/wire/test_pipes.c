/* Bytes in a pipe: sent over every kind of wire, and received from a plain wire. The pool keeps only empty pipes. */
#include "kit.h"
#include "scripted.h"

#include "base/limits.h"
#include "build_options.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 50000 };

static struct kit kit;

/* With `offered` the scripted kernel accepts keys. */
static void open_wire(int backend, const struct transport *transport, bool offered)
{
    memset(&kernel, 0, sizeof kernel);
    kit_prepare(&kit, backend, transport);
    kit.shared.ktls_calls = &scripted_calls;
    for (int cipher = 0; offered && cipher <= RECORD_CHACHA20_POLY1305; cipher++)
        kit.support.reason[0][cipher] = kit.support.reason[1][cipher] = KTLS_OK;
}

static struct pipe *filled(size_t length)
{
    struct pipe *pipe = pipe_pool_get(&kit.shared.pipes);

    ck_assert_ptr_nonnull(pipe);
    ck_assert_int_eq(write(pipe->to, kit_pattern(), length), (ssize_t)length);
    return pipe;
}

static void plan_pipe(struct pipe *pipe, size_t length, uint64_t whole)
{
    struct chunk chunk = {.kind = CHUNK_PIPE};

    chunk.pipe.source = pipe;
    chunk.pipe.length = length;
    chunk.pipe.whole = whole;
    kit.plan[kit.planned++] = chunk;
}

static void close_wire(void)
{
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    if (kit.wire.sealing == SEALING_KERNEL) { /* the scripted kernel sends no close_notify */
        close(kit.client_fd);
        kit.client_fd = -1;
    }
    kit_until_closed(&kit);
    ck_assert_uint_eq(kit.shared.pipes.open, kit.shared.pipes.free_count);
    kit_close(&kit);
}

static void send_request(void)
{
    kit_plan_bytes(&kit, STR("HEAD"));
    kit_client_send(&kit, "GET\n");
}

/* A response from a pipe over each transport. If the kernel does not encrypt, the wire reads the pipe. */
START_TEST(pipes_are_sent_by_every_transport)
{
    int backend = _i / transport_count;
    const struct transport *transport = &transports[_i % transport_count];
    bool plain = transport->version == 0;
    struct pipe *pipe;

    open_wire(backend, transport, false);
    kit_open(&kit, 0);
    kit_until_open(&kit);
    ck_assert_int_eq((wire_accepts(&kit.wire) & CHUNK_PIPE) != 0, plain);
    pipe = filled(BYTES);
    send_request();
    plan_pipe(pipe, BYTES, 1000000);
    kit_run_until_received(&kit, 4 + BYTES);
    ck_assert_mem_eq(kit.got, "HEAD", 4);
    ck_assert_mem_eq(kit.got + 4, kit_pattern(), BYTES);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_str_eq(wire_path_name(kit.transfer.path),
                     plain ? "plain-splice" : wire_path_name(transport->bytes_path));
    ck_assert_str_eq(wire_reason_name(kit.transfer.reason), wire_reason_name(transport->reason));
    ck_assert_uint_eq(kit.transfer.zero_copy, plain ? BYTES : 0);
    ck_assert_uint_eq(kit_counted(&kit), 4 + BYTES);
    pipe_discard(pipe);
    ck_assert_uint_eq(kit.shared.pipes.free_count, 1);
    close_wire();
}
END_TEST

/* After a promotion the scripted kernel sends plaintext, so the client reads the socket as it is. */
START_TEST(large_body_is_promoted)
{
    struct pipe *pipe;

    open_wire(_i, &transports[1], true);
    kit_open(&kit, 0);
    kit_until_open(&kit);
    ck_assert(wire_accepts(&kit.wire) & CHUNK_PIPE);
    pipe = filled(BYTES);
    kit_client_send(&kit, "GET\n");
    for (int i = 0; i < 10; i++) /* tickets come first */
        kit_turn(&kit);
    kit.raw = true;
    kit_plan_bytes(&kit, STR("HEAD"));
    plan_pipe(pipe, BYTES, 1000000);
    kit_pump(&kit);
    kit_run_until_received(&kit, 4 + BYTES);
    ck_assert_mem_eq(kit.got, "HEAD", 4);
    ck_assert_mem_eq(kit.got + 4, kit_pattern(), BYTES);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_str_eq(wire_path_name(kit.transfer.path), "ktls-splice");
    ck_assert_str_eq(wire_reason_name(kit.transfer.reason), "ok");
    ck_assert_uint_eq(kit.transfer.zero_copy, BYTES);
    ck_assert_uint_eq(kit.counters.promotions, 1);
    pipe_discard(pipe);
    close_wire();
}
END_TEST

static const struct {
    uint64_t whole;
    int ulp_error;
    const char *reason; /* in a build with kernel TLS */
    bool tried_again;   /* true: the owner may pass the next body in a pipe */
} declined[] = {
    {65535, 0, "small", true},
    {1000000, ENOENT, "no-module", false},
};

static bool is_built_with_ktls(void)
{
    return strcmp(BUILD_KTLS, "built in") == 0;
}

/* The body is too small, or the kernel refuses. The wire sends the bytes that are already in the pipe. */
START_TEST(declined_pipes_are_read)
{
    int row = _i % 2;
    const char *reason = row && !is_built_with_ktls() ? "not-built" : declined[row].reason;
    struct pipe *pipe;

    open_wire(_i / 2, &transports[1], true);
    kernel.ulp_error = declined[row].ulp_error;
    kit_open(&kit, 0);
    kit_until_open(&kit);
    pipe = filled(BYTES);
    send_request();
    plan_pipe(pipe, BYTES, declined[row].whole);
    kit_run_until_received(&kit, 4 + BYTES);
    ck_assert_mem_eq(kit.got + 4, kit_pattern(), BYTES);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_str_eq(wire_path_name(kit.transfer.path), "user");
    ck_assert_str_eq(wire_reason_name(kit.transfer.reason), reason);
    ck_assert_int_eq((wire_accepts(&kit.wire) & CHUNK_PIPE) != 0, declined[row].tried_again);
    ck_assert_uint_eq(kit.rooms, declined[row].ulp_error != 0);
    pipe_discard(pipe);
    close_wire();
}
END_TEST

/* A client reads nothing and closes: the pipe still has bytes, so it is closed and not reused. */
START_TEST(nonempty_pipe_is_not_reused)
{
    const struct transport *transport = &transports[0];
    struct pipe *pipe;

    open_wire(_i, transport, false);
    kit_open(&kit, 2304);
    kit_until_open(&kit);
    pipe = filled(65536);
    plan_pipe(pipe, 65536, 65536);
    kit_pump(&kit);
    ck_assert_uint_gt(wire_unsent(&kit.wire, NULL), 0);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    pipe_discard(pipe);
    ck_assert_uint_eq(kit.shared.pipes.open, 0);
    kit_close(&kit);
}
END_TEST

/* The owner releases the pipe while its bytes are queued: they are sent before the end. */
START_TEST(queued_pipe_is_sent_after_its_release)
{
    open_wire(_i, &transports[0], false);
    kit_open(&kit, 2304);
    kit_until_open(&kit);
    plan_pipe(filled(BYTES), BYTES, BYTES);
    kit_pump(&kit);
    ck_assert_uint_gt(wire_unsent(&kit.wire, NULL), 0);
    pipe_discard(kit.plan[0].pipe.source);
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    kit_run_until_received(&kit, BYTES);
    ck_assert_uint_eq(kit.got_length, BYTES);
    ck_assert_mem_eq(kit.got, kit_pattern(), BYTES);
    close_wire();
}
END_TEST

START_TEST(pool_is_limited)
{
    struct pipe *pipes[LIMIT_PIPES];

    open_wire(_i, &transports[0], false);
    kit_open(&kit, 0);
    kit_until_open(&kit);
    for (int i = 0; i < LIMIT_PIPES; i++)
        ck_assert_ptr_nonnull(pipes[i] = pipe_pool_get(&kit.shared.pipes));
    ck_assert_ptr_null(pipe_pool_get(&kit.shared.pipes));
    pipe_discard(pipes[0]);
    ck_assert_ptr_eq(pipe_pool_get(&kit.shared.pipes), pipes[0]);
    ck_assert_ptr_eq(pipe_hold(pipes[0]), pipes[0]);
    pipe_discard(pipes[0]);
    ck_assert_uint_eq(kit.shared.pipes.free_count, 0);
    for (int i = 0; i < LIMIT_PIPES; i++)
        pipe_discard(pipes[i]);
    pipe_discard(NULL);
    ck_assert_uint_eq(kit.shared.pipes.open, LIMIT_FREE_PIPES);
    close_wire();
}
END_TEST

/* Receiving into a pipe. */

static struct pipe *into;
static size_t piped_bytes;
static bool saw_end;

static void piped(struct wire *wire, size_t count)
{
    char bytes[BYTES];

    ck_assert(!wire->receiving);
    ck_assert_int_eq(read(into->from, bytes, sizeof bytes), (ssize_t)count);
    ck_assert_mem_eq(bytes, kit_pattern() + piped_bytes, count);
    piped_bytes += count;
    ck_assert(wire_can_receive_pipe(wire));
    wire_receive_pipe(wire, into, BYTES - piped_bytes ? BYTES - piped_bytes : 1);
}

static size_t received(struct wire *wire, struct str bytes)
{
    ck_assert_uint_eq(bytes.length, 0);
    saw_end = true;
    return 0;
}

static struct wire_events piping;

static void start_piping(int backend)
{
    open_wire(backend, &transports[0], false);
    kit.consumes = false;
    kit_open(&kit, 0);
    piping = *kit.wire.events;
    kit_until_open(&kit);
    kit_turn(&kit);
    piping.piped = piped;
    piping.received = received;
    kit.wire.events = &piping;
    kit.wire.receiving = false; /* cancels the receive that the kit has submitted */
    loop_cancel(&kit.loop, &kit.wire.receive);
    kit_turn(&kit);
    kit_turn(&kit);
    piped_bytes = 0;
    saw_end = false;
    into = pipe_pool_get(&kit.shared.pipes);
    ck_assert(wire_can_receive_pipe(&kit.wire));
    ck_assert(wire_has_no_input(&kit.wire));
    wire_receive_pipe(&kit.wire, into, BYTES);
    ck_assert(!wire_can_receive_pipe(&kit.wire));
}

START_TEST(bytes_are_received_into_a_pipe)
{
    start_piping(_i);
    ck_assert_int_eq(send(kit.client_fd, kit_pattern(), BYTES, MSG_NOSIGNAL), BYTES);
    while (piped_bytes < BYTES)
        kit_turn(&kit);
    ck_assert_uint_eq(wire_bytes_received(&kit.wire), BYTES);
    shutdown(kit.client_fd, SHUT_WR);
    while (!saw_end)
        kit_turn(&kit);
    ck_assert(!wire_can_receive_pipe(&kit.wire));
    pipe_discard(into);
    close_wire();
}
END_TEST

static void piped_and_answered(struct wire *wire, size_t count)
{
    const struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = STR("taken")};

    piped_bytes += count;
    ck_assert_int_eq(wire_send(wire, &chunk), 0);
    wire_flush(wire);
}

/* Bytes that the owner sends inside `piped` need no further call: only the loop runs here, not the kit. */
START_TEST(response_inside_the_callback)
{
    char message[16];

    start_piping(_i);
    piping.piped = piped_and_answered;
    ck_assert_int_eq(send(kit.client_fd, kit_pattern(), 100, MSG_NOSIGNAL), 100);
    for (int turn = 0; turn < 1000 && piped_bytes == 0; turn++)
        ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms + 10), 0);
    ck_assert_uint_eq(piped_bytes, 100);
    for (int turn = 0; turn < 10; turn++)
        ck_assert_int_ge(loop_run_iteration(&kit.loop, kit.loop.clock.monotonic_ms), 0);
    ck_assert_int_eq(recv(kit.client_fd, message, sizeof message, MSG_DONTWAIT), 5);
    ck_assert_mem_eq(message, "taken", 5);
    pipe_discard(into);
    close_wire();
}
END_TEST

/* The owner releases the pipe first: the wire keeps it until it is closed. */
START_TEST(pipe_is_released_on_close)
{
    start_piping(_i / 2);
    pipe_discard(into);
    ck_assert_uint_eq(into->users, 1);
    wire_close(&kit.wire, _i % 2 ? WIRE_CLOSE_ORDERLY : WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    ck_assert_uint_eq(kit.shared.pipes.free_count, 1);
    ck_assert_uint_eq(kit.shared.pipes.open, 1);
    kit_close(&kit);
}
END_TEST

/* wire_finish ends the server's direction after all bytes; the client's direction continues. */
START_TEST(finish_ends_one_direction)
{
    open_wire(_i / transport_count, &transports[_i % transport_count], false);
    kit_open(&kit, 0);
    kit_until_open(&kit);
    kit_plan_bytes(&kit, STR("all there is"));
    kit_pump(&kit);
    wire_finish(&kit.wire);
    while (!kit.got_end && !kit.got_close_notify)
        kit_turn(&kit);
    ck_assert_mem_eq(kit.got, "all there is", 12);
    ck_assert_int_eq(kit.got_close_notify, kit.transport->version != 0);
    ck_assert_int_eq(kit.wire.state, WIRE_OPEN);
    kit_client_send(&kit, "and yet");
    while (kit.received_length < 7)
        kit_turn(&kit);
    ck_assert_mem_eq(kit.received, "and yet", 7);
    ck_assert_uint_eq(kit.closed, 0);
    close_wire();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipes");
    TCase *tests = tcase_create("pipes");
    SRunner *runner = srunner_create(suite);
    int backends = backend_count();
    int failed;

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, pipes_are_sent_by_every_transport, 0, backends * transport_count);
    if (is_built_with_ktls())
        tcase_add_loop_test(tests, large_body_is_promoted, 0, backends);
    tcase_add_loop_test(tests, declined_pipes_are_read, 0, backends * 2);
    tcase_add_loop_test(tests, nonempty_pipe_is_not_reused, 0, backends);
    tcase_add_loop_test(tests, queued_pipe_is_sent_after_its_release, 0, backends);
    tcase_add_loop_test(tests, pool_is_limited, 0, backends);
    tcase_add_loop_test(tests, bytes_are_received_into_a_pipe, 0, backends);
    tcase_add_loop_test(tests, response_inside_the_callback, 0, backends);
    tcase_add_loop_test(tests, finish_ends_one_direction, 0, backends * transport_count);
    tcase_add_loop_test(tests, pipe_is_released_on_close, 0, backends * 2);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
