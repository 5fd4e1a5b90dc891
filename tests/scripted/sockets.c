/* See sockets.h and scripted.h. */
#include "sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

struct fake *socket_of(struct loop *loop, int fd)
{
    struct scripted *scripted = loop->backend_state;
    struct fake *fake;

    for (struct list *link = scripted->sockets.next; link != &scripted->sockets; link = link->next) {
        fake = container_of(link, struct fake, link);
        if (fake->fd != fd)
            continue;
        if (!fake->closed || fd >= SCRIPTED_FD_BASE)
            return fake;
        fake->fd = -1 - fake->fd; /* a kernel descriptor number that is reused */
    }
    fake = calloc(1, sizeof(*fake));
    if (!fake)
        abort();
    fake->fd = fd;
    fake->room = SIZE_MAX;
    list_push(&scripted->sockets, &fake->link);
    return fake;
}

bool socket_failure(struct loop *loop, const struct op *op, int *out_result)
{
    struct fake *fake = socket_of(loop, op->fd);

    for (int i = 0; i < fake->failure_count; i++) {
        if (fake->failures[i].verb != op->verb)
            continue;
        *out_result = fake->failures[i].error;
        fake->failures[i] = fake->failures[--fake->failure_count];
        return true;
    }
    return false;
}

uint64_t sockets_progress(const struct scripted *scripted)
{
    uint64_t moved = 0;

    for (const struct list *link = scripted->sockets.next; link != &scripted->sockets; link = link->next) {
        const struct fake *fake = container_of(link, struct fake, link);

        moved += fake->sent.length;
    }
    return moved;
}

void sockets_free(struct scripted *scripted)
{
    struct list *link;

    while ((link = list_pop(&scripted->sockets)) != NULL) {
        struct fake *fake = container_of(link, struct fake, link);

        buffer_finish(&fake->unread);
        buffer_finish(&fake->sent);
        free(fake);
    }
}

void scripted_peer_address(struct sockaddr_storage *address, socklen_t *out_length)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;

    memset(address, 0, sizeof(*address));
    v4->sin_family = AF_INET;
    v4->sin_port = htons(1234);
    v4->sin_addr.s_addr = htonl(0xc0000201);
    *out_length = sizeof(*v4);
}

int scripted_socket(struct loop *loop)
{
    struct scripted *scripted = loop->backend_state;

    return socket_of(loop, scripted->next_fd++)->fd;
}

void scripted_peer_send(struct loop *loop, int fd, struct str bytes)
{
    if (buffer_append(&socket_of(loop, fd)->unread, bytes) < 0)
        abort();
}

void scripted_peer_close(struct loop *loop, int fd)
{
    socket_of(loop, fd)->ended = true;
}

void scripted_peer_reset(struct loop *loop, int fd)
{
    struct fake *fake = socket_of(loop, fd);

    fake->reset = true;
    fake->reset_reported = false;
    buffer_consume(&fake->unread, fake->unread.length);
}

struct str scripted_sent(struct loop *loop, int fd)
{
    return buffer_str(&socket_of(loop, fd)->sent);
}

void scripted_sent_clear(struct loop *loop, int fd)
{
    struct buffer *sent = &socket_of(loop, fd)->sent;

    buffer_consume(sent, sent->length);
}

bool scripted_closed(struct loop *loop, int fd)
{
    const struct scripted *scripted = loop->backend_state;

    for (const struct list *link = scripted->sockets.next; link != &scripted->sockets; link = link->next) {
        const struct fake *fake = container_of(link, struct fake, link);

        if (fake->fd == fd)
            return fake->closed;
    }
    return false;
}

void scripted_receive_at_most(struct loop *loop, int fd, size_t max)
{
    socket_of(loop, fd)->receive_max = max;
}

void scripted_send_at_most(struct loop *loop, int fd, size_t max)
{
    socket_of(loop, fd)->send_max = max;
}

void scripted_give_room(struct loop *loop, int fd, size_t room)
{
    socket_of(loop, fd)->room = room;
}

void scripted_fail(struct loop *loop, int fd, enum op_verb verb, int error)
{
    struct fake *fake = socket_of(loop, fd);

    if (fake->failure_count == FAILURES_MAX)
        abort();
    fake->failures[fake->failure_count].verb = verb;
    fake->failures[fake->failure_count].error = error;
    fake->failure_count++;
}

void scripted_delay_connect(struct loop *loop, int fd)
{
    socket_of(loop, fd)->connect_delayed = true;
}

void scripted_connected(struct loop *loop, int fd, int result)
{
    struct fake *fake = socket_of(loop, fd);

    fake->connect_delayed = false;
    fake->connect_result = result;
}

int scripted_add_connection(struct loop *loop, int listener)
{
    struct fake *fake = socket_of(loop, listener);
    int fd = scripted_socket(loop);

    if (fake->arrived_count == ARRIVED_MAX)
        abort();
    memmove(fake->arrived + 1, fake->arrived, (size_t)fake->arrived_count * sizeof(fake->arrived[0]));
    fake->arrived[0] = fd;
    fake->arrived_count++;
    return fd;
}

void scripted_advance(struct loop *loop, uint64_t ms)
{
    loop->clock.monotonic_ms += ms;
    loop->clock.monotonic_us += ms * 1000;
    loop->clock.wall_ms += (int64_t)ms;
}

void scripted_shuffle(struct loop *loop, unsigned seed)
{
    ((struct scripted *)loop->backend_state)->seed = seed;
}

void scripted_cancel_loses(struct loop *loop, bool loses)
{
    ((struct scripted *)loop->backend_state)->cancel_loses = loses;
}
