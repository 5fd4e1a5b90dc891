#include "master/listen_fds.h"

#include "../runner.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST 40 /* descriptors above those of the test program */

static char message[4096];

static void record_line(void *owner, enum log_level level, struct str line)
{
    size_t length = strlen(message);

    snprintf(message + length, sizeof(message) - length, STR_FMT "\n", STR_ARG(line));
}

static struct log recording_log = {.level = LOG_NOTICE, .sink = record_line};

static void set_listen_variables(const char *count, long process)
{
    char text[32];

    message[0] = '\0';
    snprintf(text, sizeof(text), "%ld", process);
    setenv("LISTEN_PID", text, 1);
    setenv("LISTEN_FDS", count, 1);
    setenv("LISTEN_FDNAMES", "web", 1);
}

/* Opens a socket on a free port of 127.0.0.1 with descriptor `number`. */
static void open_socket(int number, int type, bool listens, struct listen_address *out_address)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, type, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    if (listens)
        ck_assert_int_eq(listen(fd, 16), 0);
    *out_address = (struct listen_address){.length = sizeof(out_address->socket)};
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&out_address->socket, &out_address->length), 0);
    ck_assert_int_eq(dup2(fd, number), number);
    close(fd);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

START_TEST(all_workers_share_a_passed_socket)
{
    struct endpoint endpoint = {.backlog = 16};
    struct configuration configuration = {.endpoints = &endpoint, .endpoint_count = 1};
    struct listen_address unused;
    struct listen_fds *passed;
    struct sockets sockets;
    struct sockets reloaded;

    open_socket(FIRST, SOCK_STREAM, true, &endpoint.address);
    open_socket(FIRST + 1, SOCK_STREAM, true, &unused);
    set_listen_variables("2", getpid());
    passed = listen_fds_take(FIRST, &recording_log);
    ck_assert_ptr_nonnull(passed);
    ck_assert_ptr_null(getenv("LISTEN_FDS"));
    ck_assert_ptr_null(getenv("LISTEN_PID"));
    ck_assert_ptr_null(getenv("LISTEN_FDNAMES"));
    ck_assert_int_eq(fcntl(FIRST, F_GETFD), FD_CLOEXEC);
    ck_assert(fcntl(FIRST, F_GETFL) & O_NONBLOCK);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 3, listen_fds_sockets(passed), &recording_log), 0);
    listen_fds_finish(passed, &configuration, false, &recording_log);
    ck_assert_msg(strstr(message, "no server listens on 127.0.0.1:") != NULL, "%s", message);
    ck_assert(!is_open(FIRST) && !is_open(FIRST + 1));
    ck_assert_int_ge(sockets_get(&sockets, 0, 0), 0);
    ck_assert_int_eq(sockets_get(&sockets, 0, 2), sockets_get(&sockets, 0, 0));
    /* A reload with more workers. */
    ck_assert_int_eq(sockets_open(&reloaded, &configuration, 5, &sockets, &recording_log), 0);
    ck_assert_int_eq(sockets_get(&reloaded, 0, 4), sockets_get(&reloaded, 0, 0));
    sockets_close(&sockets, true);
    sockets_close(&reloaded, true);
}
END_TEST

/* The sockets of a master with two workers: after an upgrade each worker has its own again. */
START_TEST(adopted_sockets_keep_their_slots)
{
    struct endpoint endpoint = {.backlog = 16};
    struct configuration configuration = {.endpoints = &endpoint, .endpoint_count = 1};
    struct listen_fds *passed;
    struct sockets sockets;
    struct sockets opened;
    int listed[2];
    int fds[3];

    message[0] = '\0';
    open_socket(FIRST, SOCK_STREAM, false, &endpoint.address);
    close(FIRST);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 2, NULL, &recording_log), 0);
    ck_assert_uint_eq(sockets_list(&sockets, listed), 2);
    ck_assert_int_ne(listed[0], listed[1]);
    fds[0] = fcntl(listed[0], F_DUPFD, FIRST);
    fds[1] = fcntl(listed[1], F_DUPFD, FIRST);
    fds[2] = fcntl(listed[1], F_DUPFD, FIRST); /* more than there are slots */
    passed = listen_fds_adopt(fds, 3, 2, &recording_log);
    ck_assert_ptr_nonnull(passed);
    ck_assert(!is_open(fds[2]));
    ck_assert_msg(strstr(message, "ignored") != NULL, "%s", message);
    ck_assert_int_eq(sockets_get(listen_fds_sockets(passed), 0, 0), fds[0]);
    ck_assert_int_eq(sockets_get(listen_fds_sockets(passed), 0, 1), fds[1]);
    ck_assert_int_eq(sockets_open(&opened, &configuration, 2, listen_fds_sockets(passed), &recording_log), 0);
    listen_fds_finish(passed, &configuration, false, &recording_log);
    ck_assert(!is_open(fds[0]) && !is_open(fds[1]));
    passed = listen_fds_duplicate(&opened, &recording_log);
    ck_assert_ptr_nonnull(passed);
    sockets_close(&opened, false);
    ck_assert(is_open(sockets_get(listen_fds_sockets(passed), 0, 1)));
    listen_fds_finish(passed, NULL, false, &recording_log);
    sockets_close(&sockets, false);
    ck_assert_ptr_null(listen_fds_adopt(NULL, 0, 2, &recording_log));
}
END_TEST

START_TEST(descriptors_of_other_kinds_are_closed)
{
    struct listen_address address;
    struct listen_fds *passed;
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[0], FIRST), FIRST);
    open_socket(FIRST + 1, SOCK_DGRAM, false, &address);
    open_socket(FIRST + 2, SOCK_STREAM, false, &address);
    open_socket(FIRST + 4, SOCK_STREAM, true, &address);
    set_listen_variables("5", getpid()); /* FIRST + 3 is not open */
    passed = listen_fds_take(FIRST, &recording_log);
    ck_assert_ptr_nonnull(passed);
    ck_assert_uint_eq(listen_fds_sockets(passed)->endpoints, 1);
    ck_assert_int_eq(sockets_get(listen_fds_sockets(passed), 0, 0), FIRST + 4);
    for (int i = 0; i < 4; i++) {
        char text[64];

        snprintf(text, sizeof(text), "descriptor %d is ignored: it is not a listening stream socket", FIRST + i);
        ck_assert_msg(strstr(message, text) != NULL, "%s", message);
        ck_assert(!is_open(FIRST + i));
    }
    listen_fds_finish(passed, NULL, false, &recording_log);
    ck_assert(!is_open(FIRST + 4));
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(second_socket_of_an_address_is_closed)
{
    struct listen_address address;
    struct listen_fds *passed;

    open_socket(FIRST, SOCK_STREAM, true, &address);
    ck_assert_int_eq(dup2(FIRST, FIRST + 1), FIRST + 1);
    set_listen_variables("2", getpid());
    passed = listen_fds_take(FIRST, &recording_log);
    ck_assert_ptr_nonnull(passed);
    ck_assert_int_eq(sockets_get(listen_fds_sockets(passed), 0, 0), FIRST);
    ck_assert_msg(strstr(message, "descriptor 41 is ignored: another passed socket has the same address") != NULL, "%s",
                  message);
    ck_assert(!is_open(FIRST + 1));
    listen_fds_finish(passed, NULL, false, &recording_log);
}
END_TEST

START_TEST(variables_of_another_process_are_ignored)
{
    struct listen_address address;

    open_socket(FIRST, SOCK_STREAM, true, &address);
    set_listen_variables("1", getppid());
    ck_assert_ptr_null(listen_fds_take(FIRST, &recording_log));
    ck_assert_str_eq(message, "");
    ck_assert_ptr_null(getenv("LISTEN_FDS"));
    ck_assert(is_open(FIRST));
    ck_assert_ptr_null(listen_fds_take(FIRST, &recording_log)); /* without the variables */
    ck_assert_ptr_null(listen_fds_sockets(NULL));
    listen_fds_finish(NULL, NULL, false, &recording_log);
    close(FIRST);
}
END_TEST

START_TEST(malformed_counts_are_ignored)
{
    static const char *const counts[] = {"", "-1", "x", "1 ", "1025", "99999999999999999999"};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        set_listen_variables(counts[i], getpid());
        ck_assert_ptr_null(listen_fds_take(FIRST, &recording_log));
        ck_assert_msg(strstr(message, "LISTEN_FDS: \"") != NULL, "%s", counts[i]);
    }
    set_listen_variables("0", getpid());
    ck_assert_ptr_null(listen_fds_take(FIRST, &recording_log));
    ck_assert_str_eq(message, "");
}
END_TEST

/* Opens a socket with the unix: path `path` with descriptor FIRST. */
static void open_unix_socket(const char *path, struct listen_address *out_address)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    *out_address = (struct listen_address){.length = sizeof(out_address->socket)};
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&out_address->socket, &out_address->length), 0);
    ck_assert_int_eq(dup2(fd, FIRST), FIRST);
    close(fd);
}

START_TEST(unix_paths_that_are_in_use_are_kept)
{
    static const struct {
        bool configured, keep_paths, service_manager, kept;
    } cases[] = {{false, false, false, false},
                 {true, false, false, true},
                 {false, true, false, true},
                 {false, false, true, true}};
    char path[64];

    snprintf(path, sizeof(path), "/tmp/test_listen_fds.%ld", (long)getpid());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct endpoint endpoint = {.backlog = 16};
        struct configuration configuration = {.endpoints = &endpoint, .endpoint_count = cases[i].configured};
        int fd = FIRST;
        struct listen_fds *passed;

        open_unix_socket(path, &endpoint.address);
        set_listen_variables("1", getpid());
        passed = cases[i].service_manager ? listen_fds_take(FIRST, &recording_log) :
                                            listen_fds_adopt(&fd, 1, 2, &recording_log);
        ck_assert_ptr_nonnull(passed);
        listen_fds_finish(passed, &configuration, cases[i].keep_paths, &recording_log);
        ck_assert(!is_open(FIRST));
        ck_assert_int_eq(unlink(path) == 0, cases[i].kept);
    }
}
END_TEST

int main(void)
{
    return run_tests("listen_fds", (const TTest *const[]){
                                       all_workers_share_a_passed_socket, descriptors_of_other_kinds_are_closed,
                                       second_socket_of_an_address_is_closed, variables_of_another_process_are_ignored,
                                       adopted_sockets_keep_their_slots, malformed_counts_are_ignored,
                                       unix_paths_that_are_in_use_are_kept, NULL});
}
