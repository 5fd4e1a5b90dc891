/* The order of bodies that a worker encodes, and their limit, with simulated inputs and readers (compress_body.c). */
#include "loopback.h"

#include "../../modules/compress/compress.h"

#include "base/limits.h"

#include <errno.h>
#include <zlib.h>

static struct loopback server;
static const char content[LIMIT_COMPRESS_INPUT];

/* Bytes encoded in an iteration of the loop; the time that a step takes, and the sum of times in the iteration. */
static size_t encoded;
static uint64_t step_us, steps_us;

int __real_deflate(z_stream *stream, int flush);
int __wrap_deflate(z_stream *stream, int flush);
uint64_t __wrap_clock_monotonic_us(void);

int __wrap_deflate(z_stream *stream, int flush)
{
    size_t before = stream->total_in;
    int result = __real_deflate(stream, flush);

    encoded += stream->total_in - before;
    steps_us += step_us;
    return result;
}

uint64_t __wrap_clock_monotonic_us(void)
{
    return server.worker.loop.clock.monotonic_us + steps_us;
}

enum { BODIES = 8 };

/* A body that is encoded, and its input: `ready` bytes, then the end, or a pause if the length is unknown. */
static struct encoding {
    struct body input;
    struct body *output;
    size_t ready;
    bool woken, ended;
} encodings[BODIES];

static int input_next(struct body *input, unsigned accept, size_t room, struct chunk *out)
{
    struct encoding *encoding = container_of(input, struct encoding, input);

    ck_assert_uint_ge(room, encoding->ready);
    if (encoding->ready == 0)
        return input->length == BODY_LENGTH_UNKNOWN ? -EAGAIN : 0;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_of(content, encoding->ready)};
    encoding->ready = 0;
    return 1;
}

static void input_close(struct body *input)
{
}

static void output_woken(void *owner)
{
    ((struct encoding *)owner)->woken = true;
}

/* Reads the output until the body pauses or ends. */
static void read_output(struct encoding *encoding)
{
    struct chunk chunk;
    int result;

    encoding->woken = false;
    do
        result = encoding->output->ops->next(encoding->output, CHUNK_BYTES, LIMIT_COMPRESS_OUTPUT, &chunk);
    while (result > 0);
    ck_assert(result == 0 || result == -EAGAIN);
    encoding->ended = result == 0;
}

/* Begins an iteration, and reads all outputs in it until no body is woken. Returns the bytes that it encoded. */
static size_t encode_in_iteration(void)
{
    bool any = true;

    encoded = 0;
    loopback_skip(&server, 1);
    while (any) {
        any = false;
        for (unsigned i = 0; i < BODIES; i++) {
            if (encodings[i].woken) {
                read_output(&encodings[i]);
                any = true;
            }
        }
    }
    return encoded;
}

/* Starts to encode pieces of 1000 bytes in an iteration whose time ends with the first: all other bodies wait. */
static struct compress_worker *open_encodings(uint64_t length)
{
    static const struct body_ops ops = {.next = input_next, .close = input_close};
    void *shared;

    loopback_open(&server, "http: {server: {listen: 8080}}");
    ck_assert_int_eq(compress_worker_start(&server.worker, &shared), 0);
    step_us = LIMIT_ITERATION_US;
    for (unsigned i = 0; i < BODIES; i++) {
        struct encoding *encoding = &encodings[i];

        *encoding = (struct encoding){.input = {.ops = &ops, .length = length}, .ready = 1000};
        encoding->output = compress_body(shared, &coder_gzip, 1, &encoding->input);
        ck_assert_ptr_nonnull(encoding->output);
        encoding->output->wake = output_woken;
        encoding->output->owner = encoding;
        read_output(encoding);
    }
    step_us = steps_us = 0;
    return shared;
}

static void close_encodings(struct compress_worker *shared)
{
    for (unsigned i = 0; i < BODIES; i++)
        body_close(&encodings[i].output);
    compress_worker_stop(shared);
    loopback_close(&server);
}

/* Bodies that wait use all of the next iteration, although each of them is short. */
START_TEST(short_bodies_share_an_iteration)
{
    struct compress_worker *shared = open_encodings(1000);

    (void)encode_in_iteration();
    for (unsigned i = 0; i < BODIES; i++)
        ck_assert(encodings[i].ended);
    close_encodings(shared);
}
END_TEST

/* The time begins with the first step: other work of the iteration does not count. */
START_TEST(other_work_does_not_end_encoding)
{
    struct compress_worker *shared = open_encodings(1000);

    steps_us = LIMIT_ITERATION_US;
    (void)encode_in_iteration();
    steps_us = 0;
    for (unsigned i = 0; i < BODIES; i++)
        ck_assert(encodings[i].ended);
    close_encodings(shared);
}
END_TEST

/* A body that waited and paused after a short piece has no right to exceed the limit of a later iteration. */
START_TEST(paused_bodies_respect_the_limit)
{
    struct compress_worker *shared = open_encodings(BODY_LENGTH_UNKNOWN);
    size_t sum = 0;

    for (unsigned i = 0; i < BODIES; i++)
        (void)encode_in_iteration();
    for (unsigned i = 0; i < BODIES; i++) {
        encodings[i].ready = LIMIT_COMPRESS_INPUT;
        encodings[i].input.wake(encodings[i].input.owner);
    }
    for (unsigned i = 0; i < BODIES; i++) {
        size_t bytes = encode_in_iteration();

        ck_assert_uint_le(bytes, LIMIT_COMPRESS_ITERATION);
        sum += bytes;
    }
    ck_assert_uint_eq(sum, (size_t)BODIES * LIMIT_COMPRESS_INPUT);
    close_encodings(shared);
}
END_TEST

/* A body that is read only after the end of the iteration's time stays the first. */
START_TEST(late_body_keeps_its_turn)
{
    struct compress_worker *shared = open_encodings(1000);

    loopback_skip(&server, 1);
    loopback_skip(&server, 1);
    ck_assert(encodings[0].woken && encodings[1].woken && !encodings[2].woken);
    step_us = LIMIT_ITERATION_US;
    read_output(&encodings[0]);
    read_output(&encodings[1]);
    ck_assert(encodings[0].ended && !encodings[1].ended);
    step_us = steps_us = 0;
    loopback_skip(&server, 1);
    ck_assert(encodings[1].woken && !encodings[2].woken);
    close_encodings(shared);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        short_bodies_share_an_iteration, other_work_does_not_end_encoding, paused_bodies_respect_the_limit,
        late_body_keeps_its_turn, NULL,
    };

    return loopback_run("compress_body", tests);
}
