/*
 * Messages between a worker and the master. The test is the master.
 */
#include "loopback.h"

#include "server/worker_channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

/* Sets the limit so that no number is free. Returns the previous limit. */
static struct rlimit use_up_descriptors(void)
{
    struct rlimit before, none;
    int lowest_free = dup(0);

    close(lowest_free);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){(rlim_t)lowest_free, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    return before;
}

static bool same_file(int a, int b)
{
    struct stat one, other;

    ck_assert_int_eq(fstat(a, &one), 0);
    ck_assert_int_eq(fstat(b, &other), 0);
    return one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}

/* The first log takes the number of the spare descriptor, and closes no other log. */
START_TEST(messages_wait_for_free_descriptors)
{
    struct rlimit before;
    int first, second;

    open_server();
    first = memfd_create("first", MFD_CLOEXEC);
    second = memfd_create("second", MFD_CLOEXEC);
    before = use_up_descriptors();
    send_message(CHANNEL_ERROR_LOG, 0, first);
    send_message(CHANNEL_ERROR_LOG, 0, second);
    send_message(CHANNEL_LOG_LEVEL, LOG_ERROR, -1);
    loopback_skip(&server, 1000);
    ck_assert(same_file(server.error_log.fd, first));
    ck_assert_int_eq(server.worker.log->level, LOG_INFO);
    ck_assert(loopback_logged(&server, "out of file descriptors"));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    loopback_skip(&server, 1000);
    ck_assert(same_file(server.error_log.fd, second));
    ck_assert_int_eq(server.worker.log->level, LOG_ERROR);
    close(first);
    close(second);
    error_log_finish(&server.error_log);
    close_server();
}
END_TEST

/* The master kills a worker that has not stopped after LIMIT_STOP_MS. */
START_TEST(stop_is_not_delayed_by_a_lack_of_descriptors)
{
    struct rlimit before;
    int first, second;

    open_server();
    first = memfd_create("first", MFD_CLOEXEC);
    second = memfd_create("second", MFD_CLOEXEC);
    before = use_up_descriptors();
    send_message(CHANNEL_ERROR_LOG, 0, first);
    for (int i = 0; i < 3; i++)
        send_message(CHANNEL_ERROR_LOG, 0, second);
    send_message(CHANNEL_STOP, 0, -1);
    loopback_skip(&server, LIMIT_STOP_MS / 2);
    ck_assert(server.worker.stopping);
    ck_assert(same_file(server.error_log.fd, first));
    ck_assert(loopback_logged(&server, "their descriptors could not be received: 3 ("));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(first);
    close(second);
    error_log_finish(&server.error_log);
    close_server();
}
END_TEST

/* The worker takes a spare descriptor as soon as one is free. */
START_TEST(spare_descriptor_is_opened_later)
{
    struct rlimit before;
    int log;

    open_server();
    log = memfd_create("log", MFD_CLOEXEC);
    before = use_up_descriptors();
    send_message(CHANNEL_ERROR_LOG, 0, log);
    ck_assert(same_file(server.error_log.fd, log));
    ck_assert_int_lt(server.worker.channel_spare, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    loopback_skip(&server, 1000);
    ck_assert_int_ge(server.worker.channel_spare, 0);
    close(log);
    error_log_finish(&server.error_log);
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
            received_descriptors_are_closed, messages_wait_for_free_descriptors,
            stop_is_not_delayed_by_a_lack_of_descriptors, spare_descriptor_is_opened_later,
            end_of_the_master_stops_the_worker, NULL});
}
