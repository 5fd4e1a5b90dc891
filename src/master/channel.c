/*
 * Messages on the socket pair. A message is a struct of fixed width; length and kind are checked on receipt.
 * Descriptors are passed by SCM_RIGHTS (unix(7)).
 */
#include "master/channel.h"

#include "base/saturate.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHANNEL_MARK 0x736c7563u

struct packet {
    uint32_t mark;
    uint32_t kind;
    uint32_t index;
    uint32_t has_fd;
    uint64_t number;
};

_Static_assert(sizeof(struct packet) == 24, "the packet has no holes");

/* Room for more descriptors than a message may contain: surplus ones are received, then closed. */
union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(4 * sizeof(int))];
};

/* SO_PASSRIGHTS of asm-generic/socket.h, undefined in headers before Linux 6.16. */
enum { PASS_RIGHTS = 83 };

void channel_refuse_descriptors(int fd)
{
    if (SOL_SOCKET == 1) /* alpha, mips, parisc and sparc have another value, and other numbers of all options */
        (void)setsockopt(fd, SOL_SOCKET, PASS_RIGHTS, &(int){0}, sizeof(int));
}

int channel_open(int *out_master, int *out_worker)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    channel_refuse_descriptors(pair[0]);
    *out_master = pair[0];
    *out_worker = pair[1];
    return 0;
}

static bool carries_fd(enum channel_kind kind)
{
    return kind == CHANNEL_ERROR_LOG || kind == CHANNEL_ACCESS_LOG || kind == CHANNEL_LISTEN ||
           kind == CHANNEL_CERTIFICATES || kind == CHANNEL_RESPOND || kind == CHANNEL_RESPONSES;
}

int channel_send(int fd, const struct channel_message *message)
{
    struct packet packet = {CHANNEL_MARK, message->kind, message->index, message->fd >= 0, message->number};
    struct iovec part = {&packet, sizeof(packet)};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};
    union control control;
    ssize_t sent;

    if (message->fd >= 0) {
        memset(&control, 0, sizeof(control));
        head.msg_control = &control;
        head.msg_controllen = CMSG_SPACE(sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.head), &message->fd, sizeof(int));
    }
    do {
        sent = sendmsg(fd, &head, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* Extracts the descriptors of a received message: the first into *out_fd, others are closed. Returns their number. */
static int extract_descriptors(struct msghdr *head, int *out_fd)
{
    int count = 0;

    *out_fd = -1;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(head); item; item = CMSG_NXTHDR(head, item)) {
        size_t held;

        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS)
            continue;
        held = size_sub_sat(item->cmsg_len, CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < held; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof(int));
            if (count++ == 0)
                *out_fd = fd;
            else
                close(fd);
        }
    }
    return count;
}

void channel_discard(int fd)
{
    while (recv(fd, NULL, 0, MSG_DONTWAIT) < 0 && errno == EINTR) {
    }
}

int channel_receive(int fd, struct channel_message *out_message)
{
    struct packet packet;
    struct iovec part = {&packet, sizeof(packet)};
    union control control;
    struct msghdr head = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t received;
    int count;
    int got;

    do {
        received = recvmsg(fd, &head, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
    if (received < 0)
        return -errno;
    count = extract_descriptors(&head, &got);
    if (received == 0 && count == 0)
        return 0;
    if (received == sizeof(packet) && count == 0 && packet.has_fd && (head.msg_flags & MSG_CTRUNC))
        return -EMFILE;
    channel_discard(fd);
    if (received != sizeof(packet) || (head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
        packet.mark != CHANNEL_MARK || packet.kind == 0 || packet.kind >= CHANNEL_KINDS ||
        packet.has_fd != (uint32_t)count || count > 1 ||
        carries_fd((enum channel_kind)packet.kind) != (count == 1)) {
        if (got >= 0)
            close(got);
        return -EPROTO;
    }
    *out_message = (struct channel_message){(enum channel_kind)packet.kind, packet.index, got, packet.number};
    return 1;
}
