/*
 * Every allocation of an HTTP/2 session fails once. Nothing crashes or leaks, the owner gets `finished` for every
 * exchange, and the output is whole frames, unless the session reports an error.
 */
#include "http/h2/frame.h"
#include "http/h2/hpack_encode.h"
#include "memory_server.h"
#include "suite.h"

#include <errno.h>

static char input[20000]; /* the client's bytes */
static char *input_end;

static void add_frame(enum h2_frame_type type, uint8_t flags, uint32_t stream, struct str payload)
{
    input_end = h2_frame_write_head(input_end, payload.length, type, flags, stream);
    memcpy(input_end, payload.data, payload.length);
    input_end += payload.length;
}

static void add_request(uint32_t stream, const char *path, int fields, bool end)
{
    static char block[16384];
    char *at = hpack_encode_field(block, STR(":method"), STR("POST"));

    at = hpack_encode_field(at, STR(":scheme"), STR("https"));
    at = hpack_encode_field(at, STR(":authority"), STR("a"));
    at = hpack_encode_field(at, STR(":path"), str_from(path));
    for (int i = 0; i < fields; i++)
        at = hpack_encode_field(at, STR("cookie"), STR("some=value"));
    add_frame(H2_HEADERS, H2_FLAG_END_HEADERS | (end ? H2_FLAG_END_STREAM : 0), stream,
              str_of(block, (size_t)(at - block)));
}

/* Checks frames and counts them; the last one may be incomplete if the session broke. */
static void check_frames(struct str bytes, bool broken)
{
    while (bytes.length >= H2_FRAME_HEAD) {
        struct h2_frame frame = h2_frame_parse_head(bytes.data);

        ck_assert_int_eq(h2_frame_check(&frame), H2_NO_ERROR);
        if (bytes.length < H2_FRAME_HEAD + frame.length)
            break;
        bytes = str_skip(bytes, H2_FRAME_HEAD + frame.length);
    }
    ck_assert(broken || bytes.length == 0);
}

struct outcome {
    char bytes[8000];
    size_t length;
    int result; /* of the last produce */
    bool failed; /* an allocation failed */
};

/* Feeds the client's bytes by `piece`; allocation number `failing` fails. */
static void run_with_failure(size_t piece, long failing, struct outcome *outcome)
{
    static const struct session_settings settings = {
        .header_buffer_size = 1024,
        .large_header_size = 8192,
        .head_max = 32768,
        .max_headers = 100,
        .keepalive_requests = 10,
        .keepalive = true,
        .http2 = {.max_concurrent_streams = 10, .body_preread_size = 65536, .chunk_size = 16384},
    };
    struct arena_pool pool = {0};
    struct clock clock = {0};
    struct protocol_counters counters = {0};
    const struct session_shared shared = {&pool, &clock, &counters};
    struct session *session;
    struct str rest = str_of(input, (size_t)(input_end - input));
    struct chunk chunk;

    memory_server_open = 0;
    memory_server_interims = 1;
    outcome->length = 0;
    outcome->result = -ENOMEM;
    memory_server_until_failure = failing;
    session = protocol_http2.open(&settings, &memory_server_events, NULL, &shared);
    while (session && rest.length) {
        rest = str_skip(rest, protocol_http2.consume(session, str_slice(rest, 0, piece)));
        while ((outcome->result = protocol_http2.produce(session, CHUNK_BYTES, 100, &chunk)) == 1) {
            if (outcome->length + chunk.bytes.length > sizeof(outcome->bytes))
                abort(); /* not ck_assert, which allocates */
            memcpy(outcome->bytes + outcome->length, chunk.bytes.data, chunk.bytes.length);
            outcome->length += chunk.bytes.length;
        }
    }
    outcome->failed = failing >= 0 && memory_server_until_failure < 0;
    memory_server_until_failure = -1;
    if (session)
        protocol_http2.close(session);
    ck_assert_int_eq(memory_server_open, 0);
    arena_pool_finish(&pool);
    check_frames(str_of(outcome->bytes, outcome->length), outcome->result < 0 && outcome->result != -EAGAIN);
}

static void begin_input(void)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    memcpy(input, preface, sizeof(preface) - 1);
    input_end = input + sizeof(preface) - 1;
    add_frame(H2_SETTINGS, 0, 0, STR(""));
}

/* Feeds the input once for each allocation that it causes. */
static void fail_each_allocation(size_t piece)
{
    static struct outcome right;
    static struct outcome seen;
    long failing = 0;

    run_with_failure(piece, -1, &right);
    ck_assert_int_eq(right.result, -EAGAIN);
    for (run_with_failure(piece, failing, &seen); seen.failed; run_with_failure(piece, failing, &seen))
        failing++;
    ck_assert_int_ge(failing, 4);
    ck_assert_uint_eq(seen.length, right.length);
    ck_assert_mem_eq(seen.bytes, right.bytes, right.length);
}

START_TEST(each_failed_allocation_ends_in_a_response_or_close)
{
    static const size_t pieces[] = {1, 7, 20000};
    static char body[6000];

    begin_input();
    add_request(1, "/", 0, true);
    add_request(3, "/%20", 30, true);
    add_request(5, "/%zz", 0, true);
    add_request(7, "/", 3, false);
    add_frame(H2_DATA, 0, 7, str_of(body, sizeof(body)));
    add_frame(H2_PING, 0, 0, STR("12345678"));
    add_frame(H2_DATA, H2_FLAG_END_STREAM, 7, str_of(body, sizeof(body)));
    add_request(9, "/", 0, false);
    add_frame(H2_RST_STREAM, 0, 9, STR("\0\0\0\x08"));
    add_request(11, "/", 0, false);
    add_frame(H2_HEADERS, H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM, 11, STR("\0\1a\1b"));
    for (size_t i = 0; i < COUNT(pieces); i++)
        fail_each_allocation(pieces[i]);
}
END_TEST

/* Head sizes near that of an arena block, so that each later allocation is once the first one in a new block. */
START_TEST(each_failed_block_ends_in_a_response_or_close)
{
    static char path[5000];

    for (size_t length = 2000; length < sizeof(path); length += 61) {
        memset(path, '/', 1);
        memset(path + 1, 'x', length);
        path[length] = '\0';
        begin_input();
        add_request(1, path, 2, false);
        add_frame(H2_DATA, H2_FLAG_END_STREAM, 1, STR("x"));
        fail_each_allocation(20000);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {each_failed_allocation_ends_in_a_response_or_close,
                                  each_failed_block_ends_in_a_response_or_close};

    return suite_run("h2_memory", tests, COUNT(tests));
}
