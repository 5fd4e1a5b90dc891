/*
 * The environment of a spool in its tests: a worker that runs submitted operations when the test calls it, and an owner
 * that adds and takes bytes. The value of each byte depends on its position.
 */
#ifndef TESTS_UNIT_MODULES_SPOOL_FIXTURE_H
#define TESTS_UNIT_MODULES_SPOOL_FIXTURE_H

#include "modules/gateway/spool.h"

#include "../http/suite.h"
#include "modules/gateway/spool_file.h"
#include "server/module.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

/* The worker. Submitted operations wait until the test runs them. */

static struct op *submitted[8];
static unsigned submitted_count;
static bool busy, cold;
static rlim_t disk = RLIM_INFINITY; /* the greatest size of a file, in bytes */

static void submit_op(struct op *op, enum op_verb verb)
{
    ck_assert(op_idle(op));
    op->verb = verb;
    op->state = OP_STATE_WAITING;
    submitted[submitted_count++] = op;
}

void worker_offload(struct worker *worker, struct op *op, int (*work)(void *argument), void *argument)
{
    op->offload.work = work;
    op->offload.argument = argument;
    submit_op(op, OP_OFFLOAD);
}

void worker_timer(struct worker *worker, struct op *op, uint64_t delay_ms)
{
    submit_op(op, OP_TIMER);
}

/* Sets the limit only during the operation, because the check library also writes files. */
static int work(struct op *op)
{
    struct rlimit limit;
    rlim_t before;
    int result;

    if (busy)
        return -EBUSY;
    getrlimit(RLIMIT_FSIZE, &limit);
    before = limit.rlim_cur;
    limit.rlim_cur = disk;
    setrlimit(RLIMIT_FSIZE, &limit);
    result = op->offload.work(op->offload.argument);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_FSIZE, &limit);
    return result;
}

static void run_first_op(void)
{
    struct op *op = submitted[0];
    int result = 0;

    ck_assert_uint_gt(submitted_count, 0);
    memmove(submitted, submitted + 1, --submitted_count * sizeof(submitted[0]));
    if (op->verb == OP_OFFLOAD)
        result = work(op);
    op->state = OP_STATE_IDLE;
    op->done(op, result);
}

static void run_all(void)
{
    while (submitted_count > 0)
        run_first_op();
}

int __wrap_spool_file_peek(const struct spool_file *file);
int __real_spool_file_peek(const struct spool_file *file);

int __wrap_spool_file_peek(const struct spool_file *file)
{
    return cold ? -EAGAIN : __real_spool_file_peek(file);
}

/* The owner. */

static struct spool *spool;
static unsigned moves, failures;
static int failed_with;
static char directory[] = "/tmp/sluice-spool-XXXXXX";
static uint64_t given, taken;       /* in bytes; the value of each byte depends on its position */
static struct chunk chunk;
static bool owned;

static char byte_at(uint64_t at)
{
    return (char)(at * 2654435761u >> 13);
}

static void moved(void *owner)
{
    ck_assert(owned);
    ck_assert_ptr_eq(owner, &spool);
    moves++;
}

static void failed(void *owner, const char *doing, int error)
{
    ck_assert(owned);
    ck_assert_ptr_nonnull(strstr(doing, "temporary file"));
    failures++;
    failed_with = error;
}

static struct spool_settings default_settings(void)
{
    return (struct spool_settings){.memory = 1000, .block = 300, .file_max = 1 << 20, .directory = str_from(directory)};
}

static void open_spool(const struct spool_settings *settings)
{
    static const struct spool_events events = {moved, failed};

    given = taken = 0;
    chunk = (struct chunk){.kind = CHUNK_BYTES};
    moves = failures = 0;
    busy = cold = false;
    owned = true;
    spool = spool_create(NULL, settings, &events, &spool);
    ck_assert_ptr_nonnull(spool);
}

static void close_spool(void)
{
    owned = false;
    spool_close(spool);
    run_all();
}

static void append_bytes(size_t count)
{
    char bytes[8000];
    for (size_t i = 0; i < count; i++)
        bytes[i] = byte_at(given + i);
    ck_assert_int_eq(spool_append(spool, str_of(bytes, count)), 0);
    given += count;
    ck_assert_uint_eq(spool_length(spool), given);
}

static void check_bytes(char *bytes, uint64_t count)
{
    uint64_t same = 0;

    while (same < count && bytes[same] == byte_at(taken + same))
        same++;
    ck_assert_msg(same == count, "byte %llu", (unsigned long long)(taken + same));
    taken += count;
}

/* Checks the bytes of the chunk when it returns them, because they must remain unchanged until then. */
static void check_returned_chunk(void)
{
    if (chunk.kind == CHUNK_BYTES) {
        check_bytes((char *)(uintptr_t)chunk.bytes.data, chunk.bytes.length);
    } else {
        while (chunk.file.length > 0) {
            char bytes[4096];
            size_t max = chunk.file.length < sizeof(bytes) ? (size_t)chunk.file.length : sizeof(bytes);
            ssize_t got = pread(chunk.file.fd, bytes, max, chunk.file.at);

            ck_assert_int_gt(got, 0);
            check_bytes(bytes, (uint64_t)got);
            chunk_advance(&chunk, (uint64_t)got);
        }
    }
    chunk = (struct chunk){.kind = CHUNK_BYTES};
}

static int read_chunk(unsigned accept, size_t room)
{
    int result;

    check_returned_chunk();
    result = spool_next(spool, accept, room, &chunk);
    if (result != 1)
        chunk = (struct chunk){.kind = CHUNK_BYTES};
    else if (chunk.kind == CHUNK_BYTES)
        ck_assert_uint_le(chunk.bytes.length, room);
    return result;
}

static void read_all(unsigned accept)
{
    int result;

    while ((result = read_chunk(accept, 700)) != 0) {
        ck_assert(result == 1 || (result == -EAGAIN && submitted_count > 0));
        if (result < 0)
            run_first_op();
    }
    ck_assert_uint_eq(taken, given);
}

#endif
