/* See fixture.h. */
#include "fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void noted(struct op *op, int result)
{
    struct probe *probe = container_of(op, struct probe, op);

    probe->runs++;
    probe->result = result;
    if (op->verb == OP_RECV && result > 0) {
        struct str kept = str_slice(op->lent, 0, sizeof(probe->bytes));

        memcpy(probe->bytes, kept.data, kept.length);
    }
    if (probe->then)
        probe->then(probe);
}

bool open_loop(struct loop *loop, int index)
{
    int error = loop_open_backend(loop, tested_backend(index), NULL);

    if (error < 0)
        fprintf(stderr, "%s: %s, not tested\n", tested_backend(index)->name, strerror(-error));
    return error == 0;
}

void probe_init(struct probe *probe, struct loop *loop)
{
    *probe = (struct probe){.op.done = noted, .loop = loop};
}

void run_until_done(struct probe *probe, int runs)
{
    struct clock start;
    struct clock now;

    clock_read(&start);
    now = start;
    while (probe->runs < runs && now.monotonic_ms < start.monotonic_ms + 20000) {
        ck_assert_int_ge(loop_turn(probe->loop, probe->loop->clock.monotonic_ms + 100), 0);
        clock_read(&now);
    }
    ck_assert_int_eq(probe->runs, runs);
}

void turn_some(struct loop *loop, int turns)
{
    while (turns-- > 0)
        ck_assert_int_ge(loop_turn(loop, 0), 0);
}

void tcp_pair(int *out_near, int *out_far)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int far;

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(connect(near, (struct sockaddr *)&address, length), 0);
    far = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(far, 0);
    close(listener);
    ck_assert_int_eq(fcntl(near, F_SETFL, O_NONBLOCK), 0);
    *out_near = near;
    *out_far = far;
}

void unix_pair(int *out_near, int *out_far)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    *out_near = ends[0];
    *out_far = ends[1];
}

char pattern_byte(size_t at)
{
    return (char)(at * 7 + at / 256);
}

int pattern_file(size_t length)
{
    char name[] = "/tmp/sluice-test-XXXXXX";
    int fd = mkstemp(name);
    char block[4096];

    ck_assert_int_ge(fd, 0);
    unlink(name);
    for (size_t at = 0; at < length; at += sizeof(block)) {
        size_t want = length - at < sizeof(block) ? length - at : sizeof(block);

        for (size_t i = 0; i < want; i++)
            block[i] = pattern_byte(at + i);
        ck_assert_int_eq(write(fd, block, want), (ssize_t)want);
    }
    return fd;
}

void say(int fd, const char *text)
{
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

void drain_pattern(int fd, size_t *at)
{
    char bytes[65536];
    ssize_t count;

    while ((count = read(fd, bytes, sizeof(bytes))) > 0) {
        for (ssize_t i = 0; i < count; i++)
            ck_assert_int_eq(bytes[i], pattern_byte(*at + (size_t)i));
        *at += (size_t)count;
    }
}

char *pattern_memory(size_t length)
{
    char *memory = malloc(length);

    for (size_t i = 0; i < length; i++)
        memory[i] = pattern_byte(i);
    return memory;
}
