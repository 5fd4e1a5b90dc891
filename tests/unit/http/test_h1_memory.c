/*
 * Every allocation of a session fails once. Nothing crashes or leaks, the owner gets `finished` for every exchange, and
 * the output is a prefix of the right response or a 500.
 */
#include "base/limits.h"
#include "memory_server.h"
#include "suite.h"

#include <stdio.h>

/* Sends `sent` in pieces of seven bytes; allocation number `failing` fails. Returns true if an allocation failed. */
static bool run_with_failure(struct str sent, long failing, char *received, size_t size)
{
    static const struct session_settings settings = {.header_buffer_size = 1024,
                                                     .large_header_size = 8192,
                                                     .head_max = 32768,
                                                     .max_headers = 100,
                                                     .body_buffer_size = 10,
                                                     .keepalive_requests = 10,
                                                     .keepalive = true};
    struct arena_pool pool = {0};
    struct clock clock = {0};
    struct protocol_counters counters = {0};
    const struct session_shared shared = {&pool, &clock, &counters};
    struct session *session;
    struct chunk chunk;
    size_t have = 0;
    bool refused_one;

    memory_server_open = 0;
    memory_server_interims = 2;
    memory_server_until_failure = failing;
    session = protocol_http1.open(&settings, &memory_server_events, NULL, &shared);
    for (size_t at = 0; session && at < sent.length;) {
        at += protocol_http1.consume(session, str_slice(sent, at, at + 7));
        while (protocol_http1.produce(session, CHUNK_BYTES, 100, &chunk) == 1) {
            memcpy(received + have, chunk.bytes.data, chunk.bytes.length);
            have += chunk.bytes.length;
            if (have > size - 200)
                abort(); /* not ck_assert, which allocates */
        }
    }
    refused_one = failing >= 0 && memory_server_until_failure < 0;
    memory_server_until_failure = -1;
    received[have] = '\0';
    if (session)
        protocol_http1.close(session);
    ck_assert_int_eq(memory_server_open, 0);
    arena_pool_finish(&pool);
    return refused_one;
}

/* Sends the requests once for each allocation that they cause. */
static void fail_each_allocation(const char *input)
{
    char right[4000];
    char seen[4000];
    long failing = 0;

    ck_assert(!run_with_failure(str_from(input), -1, right, sizeof(right)));
    ck_assert_uint_gt(strlen(right), 0);
    while (run_with_failure(str_from(input), failing, seen, sizeof(seen))) {
        ck_assert_msg(strncmp(seen, right, strlen(seen)) == 0 ||
                          strstr(seen, " 500 Internal Server Error\r\n"),
                      "allocation %ld of %s: %s", failing, input, seen);
        failing++;
    }
    ck_assert_int_ge(failing, 2);
    ck_assert_str_eq(seen, right);
}

START_TEST(each_failed_allocation_ends_in_a_response_or_close)
{
    static const char *const inputs[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /%20 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 25\r\n\r\n1234567890123456789012345GET / "
        "HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
        "chunked\r\n\r\n10;a=b\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n",
        "bad\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: "
        "a\r\nA:1\r\nB:1\r\nC:1\r\nD:1\r\nE:1\r\nF:1\r\nG:1\r\nH:1\r\nI:1\r\nJ:1\r\nK:1\r\nL:1\r\nM:1\r\nN:"
        "1\r\n"
        "O:1\r\nP:1\r\nQ:1\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT(inputs); i++)
        fail_each_allocation(inputs[i]);
}
END_TEST

/* Head sizes near that of an arena block, so that each later allocation is once the first one in a new block. */
START_TEST(each_failed_block_ends_in_a_response_or_close)
{
    for (int size = ARENA_BLOCK_SIZE - 1400; size < ARENA_BLOCK_SIZE; size += 16) {
        char input[2 * ARENA_BLOCK_SIZE];

        snprintf(
            input, sizeof(input),
            "POST /%%20 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nA: %0*d\r\n\r\n1\r\nx\r\n0\r\n"
            "A: b\r\n\r\n",
            size, 0);
        fail_each_allocation(input);
    }
}
END_TEST

/* The memory of an exchange is limited. */
START_TEST(arena_is_limited)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));

    ck_assert_ptr_null(arena_alloc(&x->arena, LIMIT_EXCHANGE_MEMORY));
    ck_assert_ptr_nonnull(arena_alloc(&x->arena, 1000));
    exchange_release(x);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {each_failed_allocation_ends_in_a_response_or_close,
                                  each_failed_block_ends_in_a_response_or_close, arena_is_limited};

    return suite_run("h1_memory", tests, COUNT(tests));
}
