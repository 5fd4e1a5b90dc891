#include "master/socket_probe.h"
#include "master/sockets.h"

#include "../runner.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char message[4096];

static void record_line(void *owner, enum log_level level, struct str line)
{
    size_t length = strlen(message);

    snprintf(message + length, sizeof(message) - length, STR_FMT, STR_ARG(line));
}

static struct log recording_log = {.level = LOG_NOTICE, .sink = record_line};

static struct endpoint endpoint_of(const char *text)
{
    struct endpoint endpoint = {.backlog = 16};

    ck_assert_int_eq(listen_address_parse(str_from(text), &endpoint.address), 0);
    return endpoint;
}

/* Returns a port that is free at the time of the call. */
static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static int lowest_free(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

START_TEST(one_socket_for_each_worker)
{
    char text[64];
    struct endpoint endpoint;
    struct configuration configuration = {.endpoints = &endpoint, .endpoint_count = 1};
    struct sockets sockets;
    int before = lowest_free();
    int own;

    snprintf(text, sizeof(text), "127.0.0.1:%u", free_port());
    endpoint = endpoint_of(text);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 3, NULL, &recording_log), 0);
    own = sockets_get(&sockets, 0, 1);
    ck_assert_int_ge(own, 0);
    ck_assert_int_ne(own, sockets_get(&sockets, 0, 0));
    ck_assert_int_ne(own, sockets_get(&sockets, 0, 2));
    sockets_close_others(&sockets, 1);
    ck_assert_int_eq(sockets_get(&sockets, 0, 0), -1);
    ck_assert_int_eq(sockets_get(&sockets, 0, 1), own);
    sockets_close(&sockets, true);
    sockets_close(&sockets, true);
    ck_assert_int_eq(lowest_free(), before);
}
END_TEST

START_TEST(port_in_use_is_reported_despite_reuseport)
{
    char texts[2][64];
    struct endpoint endpoints[2];
    struct configuration configuration = {.endpoints = endpoints, .endpoint_count = 2};
    struct sockets sockets;
    struct sockets second;
    int before = lowest_free();

    for (int i = 0; i < 2; i++) {
        snprintf(texts[i], sizeof(texts[i]), "127.0.0.1:%u", free_port());
        endpoints[i] = endpoint_of(texts[i]);
    }
    message[0] = '\0';
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 2, NULL, &recording_log), 0);
    ck_assert_int_eq(sockets_open(&second, &configuration, 2, NULL, &recording_log), -EADDRINUSE);
    for (int i = 0; i < 2; i++) {
        char expected[256];

        snprintf(expected, sizeof(expected), "bind() to %s failed (98: Address already in use)", texts[i]);
        ck_assert_msg(strstr(message, expected), "%s", message);
    }
    sockets_close(&second, false);
    sockets_close(&sockets, false);
    ck_assert_int_eq(lowest_free(), before);
    ck_assert_int_eq(socket_probe(&endpoints[0].address), 0);
}
END_TEST

/*
 * A connection in the queue of a socket stays there after a reload, for any index of the socket and any number of
 * workers.
 */
START_TEST(reload_keeps_sockets)
{
    char texts[2][64];
    struct endpoint endpoints[2];
    struct configuration first = {.endpoints = endpoints, .endpoint_count = 1};
    struct configuration second = {.endpoints = endpoints, .endpoint_count = 2};
    struct sockets sockets, fewer, more;
    struct stat before, after;
    int lowest = lowest_free();

    for (int i = 0; i < 2; i++) {
        snprintf(texts[i], sizeof(texts[i]), "127.0.0.1:%u", free_port());
        endpoints[i] = endpoint_of(texts[i]);
    }
    ck_assert_int_eq(sockets_open(&sockets, &first, 3, NULL, &recording_log), 0);
    ck_assert_int_eq(sockets_open(&fewer, &second, 2, &sockets, &recording_log), 0);
    ck_assert_uint_eq(fewer.slots, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(fstat(sockets_get(&sockets, 0, i), &before) + fstat(sockets_get(&fewer, 0, i), &after), 0);
        ck_assert_uint_eq(before.st_ino, after.st_ino);
    }
    ck_assert_int_ge(sockets_get(&fewer, 1, 1), 0);
    ck_assert_int_eq(sockets_get(&fewer, 1, 2), -1);
    sockets_close_except(&sockets, &fewer);
    ck_assert_int_eq(sockets_open(&more, &first, 4, &fewer, &recording_log), 0);
    ck_assert_int_ge(sockets_get(&more, 0, 3), 0);
    /* Worker 0 of two also keeps the socket of the former third worker. */
    sockets_close_others(&fewer, 0);
    ck_assert_int_ge(sockets_get(&fewer, 0, 0), 0);
    ck_assert_int_eq(sockets_get(&fewer, 0, 1), -1);
    ck_assert_int_ge(sockets_get(&fewer, 0, 2), 0);
    sockets_close(&fewer, false);
    sockets_close(&more, false);
    ck_assert_int_eq(lowest_free(), lowest);
}
END_TEST

/*
 * A reload with another address on a port of the server succeeds. A reload with a port of another process fails and
 * changes nothing.
 */
START_TEST(reload_replaces_a_wildcard_by_one_of_its_addresses)
{
    char texts[3][64];
    struct endpoint wide, narrow, taken;
    struct configuration first = {.endpoints = &wide, .endpoint_count = 1};
    struct configuration second = {.endpoints = &narrow, .endpoint_count = 1};
    struct configuration third = {.endpoints = &taken, .endpoint_count = 1};
    struct sockets sockets, other, rejected;
    unsigned port = free_port();

    snprintf(texts[0], sizeof(texts[0]), "127.0.0.1:%u", port);
    snprintf(texts[1], sizeof(texts[1]), "0.0.0.0:%u", port);
    snprintf(texts[2], sizeof(texts[2]), "127.0.0.1:%u", free_port());
    narrow = endpoint_of(texts[0]);
    wide = endpoint_of(texts[1]);
    taken = endpoint_of(texts[2]);
    ck_assert_int_eq(sockets_open(&sockets, &first, 2, NULL, &recording_log), 0);
    ck_assert_int_eq(sockets_open(&other, &second, 2, &sockets, &recording_log), 0);
    sockets_close_except(&sockets, &other);
    ck_assert_int_eq(sockets_open(&sockets, &third, 1, NULL, &recording_log), 0);
    message[0] = '\0';
    ck_assert_int_eq(sockets_open(&rejected, &third, 2, &other, &recording_log), -EADDRINUSE);
    ck_assert_ptr_nonnull(strstr(message, "failed (98: Address already in use)"));
    ck_assert_int_ge(sockets_get(&other, 0, 1), 0);
    sockets_close(&other, false);
    sockets_close(&sockets, false);
}
END_TEST

static unsigned mode_of(const char *path)
{
    struct stat status;

    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_mode & 0777;
}

/* The control socket is created with mode 0600, regardless of the mask, and gets it if a server had the same path. */
START_TEST(control_socket_is_for_its_owner_only)
{
    char text[64], other[80];
    struct endpoint endpoint, control;
    struct configuration plain = {.endpoints = &endpoint, .endpoint_count = 1};
    struct configuration private = {.endpoints = &control, .endpoint_count = 1};
    struct sockets first, second;
    mode_t before = umask(0);

    snprintf(text, sizeof(text), "unix:/tmp/sluice-test-%d.control", (int)getpid());
    snprintf(other, sizeof(other), "%s.other", text + 5);
    endpoint = control = endpoint_of(text);
    control.control = true;
    ck_assert_int_eq(sockets_open(&first, &private, 2, NULL, &recording_log), 0);
    ck_assert_uint_eq(mode_of(text + 5), 0600);
    ck_assert_uint_eq(umask(0), 0);
    sockets_close(&first, true);
    ck_assert_int_eq(sockets_open(&first, &plain, 2, NULL, &recording_log), 0);
    ck_assert_uint_eq(mode_of(text + 5), 0666);
    ck_assert_int_eq(sockets_open(&second, &private, 2, &first, &recording_log), 0);
    ck_assert_uint_eq(mode_of(text + 5), 0600);
    sockets_close_except(&first, &second);
    /* A symbolic link in its place is not followed. */
    ck_assert_int_eq(rename(text + 5, other), 0);
    ck_assert_int_eq(chmod(other, 0644), 0);
    ck_assert_int_eq(symlink(other, text + 5), 0);
    ck_assert_int_eq(sockets_open(&first, &private, 2, &second, &recording_log), -ENOTSOCK);
    ck_assert_uint_eq(mode_of(other), 0644);
    ck_assert_int_eq(rename(other, text + 5), 0);
    /* A removed path prevents no reload. */
    ck_assert_int_eq(unlink(text + 5), 0);
    ck_assert_int_eq(sockets_open(&first, &private, 2, &second, &recording_log), 0);
    sockets_close_except(&second, &first);
    sockets_close(&first, true);
    umask(before);
}
END_TEST

/* The path of a unix: address is removed with the last generation that uses it. */
START_TEST(reload_with_unix_paths)
{
    char directory[] = "/tmp/test_sockets.XXXXXX";
    char text[128], path[64];
    struct endpoint endpoint;
    struct configuration with = {.endpoints = &endpoint, .endpoint_count = 1};
    struct configuration without = {.endpoints = &endpoint, .endpoint_count = 0};
    struct sockets sockets, second, third;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/socket", directory);
    snprintf(text, sizeof(text), "unix:%s", path);
    endpoint = endpoint_of(text);
    ck_assert_int_eq(sockets_open(&sockets, &with, 2, NULL, &recording_log), 0);
    ck_assert_int_eq(sockets_open(&second, &with, 1, &sockets, &recording_log), 0);
    sockets_close_except(&sockets, &second);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(sockets_open(&third, &without, 1, &second, &recording_log), 0);
    sockets_close_except(&second, &third);
    ck_assert_int_eq(access(path, F_OK), -1);
    sockets_close(&third, true);
    rmdir(directory);
}
END_TEST

START_TEST(foreign_address_is_reported)
{
    struct endpoint endpoint = endpoint_of("192.0.2.1:1");
    struct configuration configuration = {.endpoints = &endpoint, .endpoint_count = 1};
    struct sockets sockets;

    message[0] = '\0';
    ck_assert_int_lt(sockets_open(&sockets, &configuration, 2, NULL, &recording_log), 0);
    ck_assert_ptr_nonnull(strstr(message, "bind() to 192.0.2.1:1 failed"));
}
END_TEST

START_TEST(unix_path_is_reused_after_a_crash_and_removed_at_close)
{
    char directory[] = "/tmp/test_sockets.XXXXXX";
    char text[128];
    char path[64];
    struct endpoint endpoint;
    struct configuration configuration = {.endpoints = &endpoint, .endpoint_count = 1};
    struct sockets sockets;
    struct sockets second;
    FILE *file;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/socket", directory);
    snprintf(text, sizeof(text), "unix:%s", path);
    endpoint = endpoint_of(text);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 2, NULL, &recording_log), 0);
    ck_assert_int_eq(sockets_get(&sockets, 0, 0), sockets_get(&sockets, 0, 1));
    ck_assert_int_eq(sockets_open(&second, &configuration, 2, NULL, &recording_log), -EADDRINUSE);
    /* After a crash: the socket is closed, but its path remains. */
    sockets_close(&sockets, false);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 2, NULL, &recording_log), 0);
    sockets_close(&sockets, true);
    ck_assert_int_eq(access(path, F_OK), -1);
    /* A file that is not a socket is not removed. */
    file = fopen(path, "w");
    fclose(file);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 2, NULL, &recording_log), -EADDRINUSE);
    ck_assert_int_eq(access(path, F_OK), 0);
    unlink(path);
    rmdir(directory);
}
END_TEST

int main(void)
{
    return run_tests("sockets", (const TTest *const[]){
                                    one_socket_for_each_worker, port_in_use_is_reported_despite_reuseport,
                                    foreign_address_is_reported, unix_path_is_reused_after_a_crash_and_removed_at_close,
                                    reload_keeps_sockets, reload_replaces_a_wildcard_by_one_of_its_addresses,
                                    reload_with_unix_paths, control_socket_is_for_its_owner_only, NULL});
}
