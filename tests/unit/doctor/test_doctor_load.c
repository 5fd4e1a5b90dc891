#include "doctor/doctor_load.h"

#include "../runner.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD "HTTP/1.1 206 Partial Content\r\nServer: x\r\nContent-Length: 10\r\nETag: \"a\"\r\n\r\n"

static struct load_reader reader;
static struct load_counts counts;

static int consume(const char *text)
{
    return load_reader_consume(&reader, str_from(text), &counts);
}

/* In pieces of every length. */
START_TEST(responses_are_counted)
{
    static const char response[] = HEAD "0123456789";
    size_t length = sizeof(response) - 1;

    for (size_t piece = 1; piece <= length; piece++) {
        reader = (struct load_reader){.in_body = false};
        counts = (struct load_counts){.responses = 0};
        for (int round = 1; round <= 2; round++) {
            for (size_t at = 0; at < length; at += piece) {
                size_t part = at + piece < length ? piece : length - at;

                ck_assert_int_eq(load_reader_consume(&reader, str_of(response + at, part), &counts),
                                 at + part == length);
            }
            ck_assert_uint_eq(counts.responses, (uint64_t)round);
            ck_assert_uint_eq(counts.bytes, 10 * (uint64_t)round);
        }
    }
}
END_TEST

START_TEST(parts_of_a_body_are_counted)
{
    ck_assert_int_eq(consume(HEAD "012"), 0);
    ck_assert_uint_eq(counts.bytes, 3);
    ck_assert_uint_eq(counts.responses, 0);
}
END_TEST

START_TEST(other_responses_are_errors)
{
    static const char *const wrong[] = {
        "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 206 Partial Content\r\nServer: x\r\n\r\n",
        "HTTP/1.1 206 Partial Content\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 206 Partial Content\r\nContent-Length: \r\n\r\n",
        "HTTP/1.1 206 Partial Content\r\nContent-Length: 18446744073709551616\r\n\r\n",
        "\r\n\r\n",
        HEAD "0123456789A",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        reader = (struct load_reader){.in_body = false};
        ck_assert_msg(consume(wrong[i]) == -EPROTO, "%s", wrong[i]);
    }
}
END_TEST

START_TEST(long_header_section_is_an_error)
{
    char text[2048];
    size_t sent = 0;
    int result = 0;

    memset(text, 'x', sizeof(text));
    for (; sent < sizeof(text) && result == 0; sent++)
        result = load_reader_consume(&reader, str_of(text + sent, 1), &counts);
    ck_assert_int_eq(result, -EPROTO);
    ck_assert_uint_eq(sent, sizeof(reader.head) + 1);
}
END_TEST

static int listen_here(uint16_t *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

START_TEST(refused_connection_is_an_error)
{
    struct load load = {.length = 10, .connections = 1, .last_us = UINT64_MAX};
    struct load_client *client = NULL;

    close(listen_here(&load.port));
    ck_assert_int_eq(load_open(&load, &client), -ECONNREFUSED);
    ck_assert_ptr_null(client);
    load_close(NULL);
}
END_TEST

static void *answer_plain(void *argument)
{
    int fd = accept(*(int *)argument, NULL, NULL);

    ck_assert_int_eq(write(fd, HEAD, sizeof(HEAD) - 1), sizeof(HEAD) - 1);
    close(fd);
    return NULL;
}

static void *answer_two_requests(void *argument)
{
    int fd = accept(*(int *)argument, NULL, NULL);
    char request[1024];

    for (int i = 0; i < 2; i++) {
        ck_assert_int_gt(read(fd, request, sizeof(request)), 0);
        ck_assert_int_eq(write(fd, HEAD "0123456789", sizeof(HEAD) + 9), sizeof(HEAD) + 9);
    }
    while (read(fd, request, sizeof(request)) > 0)
        continue;
    close(fd);
    return NULL;
}

/* A machine that is too slow for the requested time takes longer. */
START_TEST(more_responses_than_connections_are_awaited)
{
    const volatile sig_atomic_t never = 0;
    struct load load = {.length = 10, .connections = 1, .last_us = UINT64_MAX};
    int listener = listen_here(&load.port);
    struct load_client *client = NULL;
    pthread_t thread;

    ck_assert_int_eq(load_open(&load, &client), 0);
    ck_assert_int_eq(load_run(client, 0, 1000, &never, &counts), 0);
    ck_assert_uint_eq(counts.responses, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, answer_two_requests, &listener), 0);
    ck_assert_int_eq(load_await(client, &never, &counts), 0);
    ck_assert_uint_eq(counts.responses, 2);
    ck_assert_uint_eq(counts.bytes, 20);
    load_close(client);
    pthread_join(thread, NULL);
    close(listener);
}
END_TEST

START_TEST(nothing_is_awaited_after_the_last_time)
{
    const volatile sig_atomic_t never = 0;
    struct load load = {.length = 10, .connections = 1, .last_us = clock_monotonic_us() + 100000};
    int listener = listen_here(&load.port);
    struct load_client *client = NULL, *late = NULL;

    ck_assert_int_eq(load_open(&load, &client), 0);
    ck_assert_int_eq(load_await(client, &never, &counts), 0);
    ck_assert_uint_eq(counts.responses, 0);
    ck_assert_int_eq(load_open(&load, &late), -ETIMEDOUT);
    load_close(client);
    close(listener);
}
END_TEST

/* The peer does not speak TLS, then does not continue. */
START_TEST(broken_peers_are_errors)
{
    const volatile sig_atomic_t never = 0, now = 1;
    uint64_t later_us = clock_monotonic_us() + 20000000;
    struct load load = {.length = 10, .connections = 1, .tls = true, .last_us = UINT64_MAX};
    int listener = listen_here(&load.port);
    struct load_client *client = NULL;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, answer_plain, &listener), 0);
    ck_assert_int_eq(load_open(&load, &client), -EPROTO);
    pthread_join(thread, NULL);
    load.tls = false;
    ck_assert_int_eq(load_open(&load, &client), 0);
    ck_assert_int_eq(load_run(client, later_us, 1000, &now, &counts), 0);
    ck_assert_int_eq(load_run(client, 0, 1000, &never, &counts), 0);
    ck_assert_int_eq(load_run(client, later_us, 0, &never, &counts), 0);
    ck_assert_uint_eq(counts.bytes, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, answer_plain, &listener), 0);
    ck_assert_int_eq(load_run(client, later_us, 1000, &never, &counts), -ECONNRESET);
    pthread_join(thread, NULL);
    load_close(client);
    close(listener);
}
END_TEST

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return run_tests("doctor_load",
                     (const TTest *const[]){responses_are_counted, parts_of_a_body_are_counted,
                                            other_responses_are_errors, long_header_section_is_an_error,
                                            refused_connection_is_an_error,
                                            more_responses_than_connections_are_awaited,
                                            nothing_is_awaited_after_the_last_time,
                                            broken_peers_are_errors, NULL});
}
