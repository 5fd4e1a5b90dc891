#include "master/channel.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int ends[2];

static void setup(void)
{
    ck_assert_int_eq(channel_open(&ends[0], &ends[1]), 0);
}

START_TEST(messages_arrive_in_order)
{
    struct channel_message got;

    setup();
    ck_assert_int_eq(channel_receive(ends[1], &got), -EAGAIN);
    ck_assert_int_eq(channel_send(ends[0], &(struct channel_message){CHANNEL_QUIT, 7, -1}), 0);
    ck_assert_int_eq(channel_send(ends[0], &(struct channel_message){CHANNEL_STOP, 8, -1}), 0);
    ck_assert_int_eq(channel_receive(ends[1], &got), 1);
    ck_assert_int_eq(got.kind, CHANNEL_QUIT);
    ck_assert_uint_eq(got.index, 7);
    ck_assert_int_eq(got.fd, -1);
    ck_assert_int_eq(channel_receive(ends[1], &got), 1);
    ck_assert_int_eq(got.kind, CHANNEL_STOP);
    ck_assert_int_eq(channel_receive(ends[1], &got), -EAGAIN);
    ck_assert_int_eq(channel_send(ends[1], &(struct channel_message){CHANNEL_READY, 0, -1}), 0);
    ck_assert_int_eq(channel_receive(ends[0], &got), 1);
    ck_assert_int_eq(got.kind, CHANNEL_READY);
}
END_TEST

START_TEST(master_gets_no_descriptors)
{
    enum { PASS_RIGHTS = 83 };
    int passes;
    struct channel_message got;

    setup();
    if (!has_passrights())
        SKIP_TEST("this kernel has no SO_PASSRIGHTS (Linux 6.16)");
    ck_assert_int_eq(getsockopt(ends[0], SOL_SOCKET, PASS_RIGHTS, &passes, &(socklen_t){sizeof(passes)}), 0);
    ck_assert_int_eq(passes, 0);
    ck_assert_int_eq(channel_send(ends[1], &(struct channel_message){CHANNEL_ACCESS_LOG, 0, 0}), -EPERM);
    ck_assert_int_eq(channel_send(ends[1], &(struct channel_message){CHANNEL_READY, 0, -1}), 0);
    ck_assert_int_eq(channel_receive(ends[0], &got), 1);
    ck_assert_int_eq(got.kind, CHANNEL_READY);
}
END_TEST

START_TEST(messages_carry_descriptors)
{
    struct channel_message got;
    struct stat sent;
    struct stat arrived;
    int pipes[2];

    setup();
    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(channel_send(ends[0], &(struct channel_message){CHANNEL_ACCESS_LOG, 3, pipes[1]}), 0);
    ck_assert_int_eq(channel_receive(ends[1], &got), 1);
    ck_assert_int_eq(got.kind, CHANNEL_ACCESS_LOG);
    ck_assert_uint_eq(got.index, 3);
    ck_assert_int_ge(got.fd, 0);
    ck_assert_int_ne(got.fd, pipes[1]);
    ck_assert(fcntl(got.fd, F_GETFD) & FD_CLOEXEC);
    ck_assert_int_eq(fstat(pipes[1], &sent), 0);
    ck_assert_int_eq(fstat(got.fd, &arrived), 0);
    ck_assert(sent.st_ino == arrived.st_ino && sent.st_dev == arrived.st_dev);
}
END_TEST

START_TEST(closed_peer_is_reported)
{
    struct channel_message got;

    setup();
    close(ends[0]);
    ck_assert_int_eq(channel_receive(ends[1], &got), 0);
    ck_assert_int_eq(channel_send(ends[1], &(struct channel_message){CHANNEL_READY, 0, -1}), -EPIPE);
}
END_TEST

START_TEST(send_does_not_wait_for_the_reader)
{
    int result = 0;

    setup();
    for (int i = 0; i < 100000 && result == 0; i++)
        result = channel_send(ends[0], &(struct channel_message){CHANNEL_QUIT, 0, -1});
    ck_assert_int_eq(result, -EAGAIN);
}
END_TEST

START_TEST(malformed_messages_are_refused)
{
    static const struct {
        uint32_t words[7];
        size_t length;
    } cases[] = {
        {{0x736c7563u, CHANNEL_QUIT, 0, 0}, 23},      /* too short */
        {{0x736c7563u, CHANNEL_QUIT, 0, 0}, 28},      /* too long */
        {{0x12345678u, CHANNEL_QUIT, 0, 0}, 24},      /* wrong magic number */
        {{0x736c7563u, 0, 0, 0}, 24},                 /* no kind */
        {{0x736c7563u, CHANNEL_KINDS, 0, 0}, 24},     /* unknown kind */
        {{0x736c7563u, CHANNEL_QUIT, 0, 1}, 24},      /* announces a descriptor and has none */
        {{0x736c7563u, CHANNEL_ERROR_LOG, 0, 0}, 24}, /* this kind requires a descriptor */
        {{0x736c7563u, CHANNEL_RESPOND, 0, 0}, 24},  /* so does this */
    };
    struct channel_message got = {.index = 99};

    setup();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(send(ends[0], cases[i].words, cases[i].length, 0), (int)cases[i].length);
        ck_assert_msg(channel_receive(ends[1], &got) == -EPROTO, "case %zu", i);
        ck_assert_uint_eq(got.index, 99);
    }
    /* The messages after them are still received. */
    ck_assert_int_eq(channel_send(ends[0], &(struct channel_message){CHANNEL_QUIT, 1, -1}), 0);
    ck_assert_int_eq(channel_receive(ends[1], &got), 1);
}
END_TEST

static int lowest_free(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

START_TEST(surplus_descriptors_are_closed)
{
    uint32_t words[6] = {0x736c7563u, CHANNEL_ERROR_LOG, 0, 1};
    struct iovec part = {words, sizeof(words)};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr head = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    int fds[2] = {0, 1};
    struct channel_message got;
    int free_before;

    setup();
    free_before = lowest_free();
    control.head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(fds)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
    ck_assert_int_eq(sendmsg(ends[0], &head, 0), (int)sizeof(words));
    ck_assert_int_eq(channel_receive(ends[1], &got), -EPROTO);
    ck_assert_int_eq(lowest_free(), free_before);
    /* One descriptor with a kind that permits none. */
    words[1] = CHANNEL_QUIT;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    head.msg_controllen = CMSG_SPACE(sizeof(int));
    ck_assert_int_eq(sendmsg(ends[0], &head, 0), (int)sizeof(words));
    ck_assert_int_eq(channel_receive(ends[1], &got), -EPROTO);
    ck_assert_int_eq(lowest_free(), free_before);
}
END_TEST

START_TEST(messages_wait_for_a_free_descriptor)
{
    struct rlimit before;
    struct rlimit none;
    struct channel_message got;

    setup();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){(rlim_t)lowest_free(), before.rlim_max};
    ck_assert_int_eq(channel_send(ends[0], &(struct channel_message){CHANNEL_ACCESS_LOG, 0, 0}), 0);
    ck_assert_int_eq(channel_send(ends[0], &(struct channel_message){CHANNEL_QUIT, 0, -1}), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(channel_receive(ends[1], &got), -EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(channel_receive(ends[1], &got), 1);
    ck_assert_int_eq(got.kind, CHANNEL_ACCESS_LOG);
    ck_assert_int_eq(fcntl(got.fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(channel_receive(ends[1], &got), 1);
    ck_assert_int_eq(got.kind, CHANNEL_QUIT);
    ck_assert_int_eq(channel_receive(ends[1], &got), -EAGAIN);
}
END_TEST

int main(void)
{
    return run_tests("channel",
                     (const TTest *const[]){messages_arrive_in_order, master_gets_no_descriptors,
                                            messages_carry_descriptors,
                                            closed_peer_is_reported, send_does_not_wait_for_the_reader,
                                            malformed_messages_are_refused, surplus_descriptors_are_closed,
                                            messages_wait_for_a_free_descriptor, NULL});
}
