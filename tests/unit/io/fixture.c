/* See fixture.h. */
#include "fixture.h"

#include "scripted.h"

#include "../skip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void noted(struct op *op, int result)
{
    struct probe *probe = container_of(op, struct probe, op);

    probe->runs++;
    probe->result = result;
    if (op->verb == OP_RECV && result > 0) {
        struct str stored = str_slice(op->received, 0, sizeof(probe->bytes));

        memcpy(probe->bytes, stored.data, stored.length);
    }
    if (probe->then)
        probe->then(probe);
}

bool open_loop(struct loop *loop, int index)
{
    int error = loop_open_backend(loop, tested_backend(index), NULL);

    if (error < 0)
        report_skipped(tested_backend(index)->name, strerror(-error));
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
        ck_assert_int_ge(loop_run_iteration(probe->loop, probe->loop->clock.monotonic_ms + 100), 0);
        clock_read(&now);
    }
    ck_assert_int_eq(probe->runs, runs);
}

void turn_some(struct loop *loop, int turns)
{
    while (turns-- > 0)
        ck_assert_int_ge(loop_run_iteration(loop, 0), 0);
}

/* Capacity of a scripted connection towards a peer that does not read. */
#define SCRIPTED_ROOM 65536

/* The loop of the scripted connections; NULL while a backend of the kernel is tested. */
static struct loop *scripted;

static bool scripted_pair(struct loop *loop, int *out_local, int *out_peer)
{
    scripted = loop->backend == &loop_backend_scripted ? loop : NULL;
    if (!scripted)
        return false;
    *out_local = *out_peer = scripted_socket(loop);
    scripted_give_room(loop, *out_local, SCRIPTED_ROOM);
    return true;
}

void tcp_pair(struct loop *loop, int *out_local, int *out_peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener;

    if (scripted_pair(loop, out_local, out_peer))
        return;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *out_local = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(connect(*out_local, (struct sockaddr *)&address, length), 0);
    *out_peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(*out_peer, 0);
    ck_assert_int_eq(fcntl(*out_local, F_SETFL, O_NONBLOCK), 0);
    close(listener);
}

void unix_pair(struct loop *loop, int *out_local, int *out_peer)
{
    int ends[2];

    if (scripted_pair(loop, out_local, out_peer))
        return;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    *out_local = ends[0];
    *out_peer = ends[1];
}

void peer_send_bytes(int peer, const void *bytes, size_t length)
{
    if (scripted)
        scripted_peer_send(scripted, peer, str_of(bytes, length));
    else
        ck_assert_int_eq(write(peer, bytes, length), (ssize_t)length);
}

void peer_send(int peer, const char *text)
{
    peer_send_bytes(peer, text, strlen(text));
}

void peer_close(int peer)
{
    if (scripted)
        scripted_peer_close(scripted, peer);
    else
        close(peer);
}

void peer_reset(int peer)
{
    const struct linger hard = {1, 0};

    if (scripted) {
        scripted_peer_reset(scripted, peer);
        return;
    }
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(peer);
}

size_t peer_pending(int peer)
{
    int count = 0;

    if (scripted)
        return scripted_sent(scripted, peer).length;
    ck_assert_int_eq(ioctl(peer, FIONREAD, &count), 0);
    return (size_t)count;
}

/* Compares all bytes with one assertion, because each assertion writes to a pipe. */
void check_pattern(const char *bytes, size_t length, size_t *at)
{
    size_t same = 0;

    while (same < length && bytes[same] == pattern_byte(*at + same))
        same++;
    ck_assert_uint_eq(same, length);
    *at += length;
}

void peer_drain_pattern(int peer, size_t *at)
{
    char bytes[65536];
    ssize_t count;

    if (scripted) {
        check_pattern(scripted_sent(scripted, peer).data, scripted_sent(scripted, peer).length, at);
        scripted_sent_clear(scripted, peer);
        scripted_give_room(scripted, peer, SCRIPTED_ROOM);
        return;
    }
    while ((count = read(peer, bytes, sizeof(bytes))) > 0)
        check_pattern(bytes, (size_t)count, at);
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

char *pattern_memory(size_t length)
{
    char *memory = malloc(length);

    for (size_t i = 0; i < length; i++)
        memory[i] = pattern_byte(i);
    return memory;
}
