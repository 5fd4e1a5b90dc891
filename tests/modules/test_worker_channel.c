/*
 * Messages between a worker and the master. The test is the master.
 */
#include "loopback.h"

#include "server/worker_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loopback server;
static int master_end;

const struct module *const module_table[] = {NULL};

static void open_server(void)
{
    loopback_open(&server, "http: {server: {listen: 8080}}");
    ck_assert_int_eq(channel_open(&master_end, &server.worker.channel_fd), 0);
    server.worker.channel_spare = -1;
    worker_channel_start(&server.worker);
}

static void close_server(void)
{
    loop_cancel(&server.worker.loop, &server.worker.channel);
    loopback_turn(&server, 5);
    if (master_end >= 0)
        close(master_end);
    close(server.worker.channel_fd);
    close(server.worker.channel_spare);
    server.worker.channel_fd = server.worker.channel_spare = -1;
    loopback_close(&server);
}

static void send_message(enum channel_kind kind, uint32_t index, int fd)
{
    const struct channel_message message = {.kind = kind, .index = index, .fd = fd};

    ck_assert_int_eq(channel_send(master_end, &message), 0);
    loopback_turn(&server, 5);
}

START_TEST(messages_are_sent_to_the_master)
{
    struct channel_message message;

    open_server();
    worker_channel_send(&server.worker, CHANNEL_READY);
    ck_assert_int_eq(channel_receive(master_end, &message), 1);
    ck_assert_int_eq(message.kind, CHANNEL_READY);
    close(master_end);
    master_end = -1;
    worker_channel_send(&server.worker, CHANNEL_READY);
    ck_assert(loopback_logged(&server, "sending to the master failed"));
    close_server();
}
END_TEST

START_TEST(malformed_messages_are_logged_and_ignored)
{
    open_server();
    ck_assert_int_eq(send(master_end, "x", 1, 0), 1);
    loopback_turn(&server, 5);
    ck_assert(loopback_logged(&server, "a malformed message on the master's channel"));
    ck_assert(!server.worker.stopping && !server.worker.draining);
    send_message(CHANNEL_READY, 0, -1); /* of a worker */
    send_message(CHANNEL_QUERY, 0, -1);
    ck_assert(!server.worker.stopping);
    close_server();
}
END_TEST

/* A descriptor of a log that does not exist, and those of a query. */
START_TEST(received_descriptors_are_closed)
{
    int pair[2];
    char byte;

    open_server();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        send_message((const enum channel_kind[]){CHANNEL_ACCESS_LOG, CHANNEL_RESPOND, CHANNEL_RESPONSES}[i], 99,
                     pair[1]);
        close(pair[1]);
        while (recv(pair[0], &byte, 1, 0) > 0) {
        }
        ck_assert_int_eq(recv(pair[0], &byte, 1, 0), 0);
        close(pair[0]);
    }
    close_server();
}
END_TEST

START_TEST(end_of_the_master_stops_the_worker)
{
    open_server();
    close(master_end);
    master_end = -1;
    loopback_turn(&server, 5);
    ck_assert(server.worker.stopping);
    ck_assert(loopback_logged(&server, "the master has exited; this worker exits"));
    close_server();
}
END_TEST

int main(void)
{
    return loopback_run("worker_channel", (const TTest *const[]){
            messages_are_sent_to_the_master, malformed_messages_are_logged_and_ignored,
            received_descriptors_are_closed, end_of_the_master_stops_the_worker, NULL});
}
