#include "log/syslog.h"

#include "../runner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ck_assert_text(text, expected)                                                                       \
    do {                                                                                                     \
        struct str got_ = (text);                                                                            \
                                                                                                             \
        ck_assert_msg(str_equal(got_, str_from(expected)), "\"" STR_FMT "\", not \"%s\"", STR_ARG(got_), expected); \
    } while (0)

START_TEST(addresses_are_parsed)
{
    static const struct {
        const char *text;
        const char *address; /* NULL: rejected */
    } rows[] = {
        {"127.0.0.1", "127.0.0.1:514"},
        {"127.0.0.1:5514", "127.0.0.1:5514"},
        {"[::1]", "[::1]:514"},
        {"[::1]:5514", "[::1]:5514"},
        {"unix:/dev/log", "unix:/dev/log"},
        {"", NULL},
        {"514", NULL},
        {":514", NULL},
        {"*", NULL},
        {"*:514", NULL},
        {"127.0.0.1:", NULL},
        {"127.0.0.1:0", NULL},
        {"127.0.0.1:65536", NULL},
        {"127.0.0.256", NULL},
        {"::1", NULL},
        {"[::1", NULL},
        {"[]", NULL},
        {"unix:", NULL},
        {"localhost", NULL},
        {"a.very.long.name.that.has.more.bytes.than.any.address.may.have.in.all:514", NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct listen_address address;
        char text[128];
        int result = syslog_address_parse(str_from(rows[i].text), &address);

        ck_assert_msg(result == (rows[i].address ? 0 : -EINVAL), "%s: %d", rows[i].text, result);
        if (rows[i].address)
            ck_assert_text(listen_address_format(&address, text, sizeof(text)), rows[i].address);
    }
}
END_TEST

START_TEST(tags_and_facilities_are_parsed)
{
    struct syslog syslog;
    int facility;

    syslog_init(&syslog);
    ck_assert_str_eq(syslog.tag, "sluice");
    ck_assert_int_eq(syslog.facility, 23);
    ck_assert_int_eq(syslog_set_tag(&syslog, STR("Tag_9")), 0);
    ck_assert_str_eq(syslog.tag, "Tag_9");
    ck_assert_int_eq(syslog_set_tag(&syslog, STR("0123456789012345678901234567890a")), 0);
    ck_assert_int_eq(syslog_set_tag(&syslog, STR("0123456789012345678901234567890ab")), -EINVAL);
    ck_assert_int_eq(syslog_set_tag(&syslog, STR("")), -EINVAL);
    ck_assert_int_eq(syslog_set_tag(&syslog, STR("a-b")), -EINVAL);
    ck_assert_int_eq(syslog_set_tag(&syslog, STR("a\n")), -EINVAL);
    ck_assert_int_eq(syslog_facility_parse(STR("kern"), &facility), 0);
    ck_assert_int_eq(facility, 0);
    ck_assert_int_eq(syslog_facility_parse(STR("local0"), &facility), 0);
    ck_assert_int_eq(facility, 16);
    ck_assert_int_eq(syslog_facility_parse(STR("local8"), &facility), -EINVAL);
    ck_assert_int_eq(syslog_facility_parse(STR(""), &facility), -EINVAL);
}
END_TEST

START_TEST(headers_have_the_forms_of_both_standards)
{
    static const struct {
        const char *zone, *hostname;
        enum syslog_form form;
        const char *header;
    } rows[] = {
        {"UTC0", "host", SYSLOG_RFC3164, "<187>Jan  2 03:04:05 host web: "},
        {"UTC0", "", SYSLOG_RFC3164, "<187>Jan  2 03:04:05 web: "},
        {"UTC0", "host", SYSLOG_RFC5424, "<187>1 2024-01-02T03:04:05.067+00:00 host web PID - - "},
        {"XXX-5:30", "", SYSLOG_RFC5424, "<187>1 2024-01-02T08:34:05.067+05:30 - web PID - - "},
        {"XXX+3:30", "host", SYSLOG_RFC5424, "<187>1 2024-01-01T23:34:05.067-03:30 host web PID - - "},
    };
    const struct clock clock = {.wall_ms = 1704164645067};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct syslog syslog = {.facility = 23, .tag = "web", .form = rows[i].form};
        char header[SYSLOG_HEADER_SIZE], expected[SYSLOG_HEADER_SIZE];
        const char *pid = strstr(rows[i].header, "PID");

        snprintf(syslog.hostname, sizeof(syslog.hostname), "%s", rows[i].hostname);
        snprintf(expected, sizeof(expected), "%s", rows[i].header);
        if (pid)
            snprintf(expected + (pid - rows[i].header), 64, "%ld%s", (long)getpid(), pid + 3);
        setenv("TZ", rows[i].zone, 1);
        tzset();
        ck_assert_text(syslog_header(&syslog, LOG_ERROR, &clock, header), expected);
    }
}
END_TEST

START_TEST(journal_has_the_length_of_the_text)
{
    const struct syslog syslog = {.facility = 3, .tag = "web", .form = SYSLOG_JOURNAL};
    const struct syslog other = {.form = SYSLOG_RFC5424};
    static const char expected[] = "PRIORITY=6\nSYSLOG_FACILITY=3\n"
                                   "SYSLOG_IDENTIFIER=web\nMESSAGE\n\x2c\x01\0\0\0\0\0\0";
    char header[SYSLOG_HEADER_SIZE], text[300];
    struct buffer datagram = {0};

    memset(text, '\n', sizeof(text));
    ck_assert_int_eq(buffer_append(&datagram, syslog_header(&syslog, LOG_INFO, NULL, header)), 0);
    ck_assert_uint_eq(datagram.length, sizeof(expected) - 1);
    ck_assert_int_eq(buffer_append(&datagram, str_of(text, sizeof(text))), 0);
    ck_assert_int_eq(syslog_finish(&syslog, &datagram, sizeof(expected) - 1), 0);
    ck_assert_uint_eq(datagram.length, sizeof(expected) - 1 + 301);
    ck_assert_mem_eq(datagram.data, expected, sizeof(expected) - 1);
    ck_assert_int_eq(datagram.data[datagram.length - 1], '\n');
    ck_assert_int_eq(syslog_finish(&other, &datagram, 0), 0);
    ck_assert_uint_eq(datagram.length, sizeof(expected) - 1 + 301);
    buffer_finish(&datagram);
}
END_TEST

START_TEST(longest_header_fits)
{
    struct syslog syslog = {.facility = 23, .form = SYSLOG_RFC5424};
    const struct clock clock = {.wall_ms = INT64_MAX / 1000};
    char header[SYSLOG_HEADER_SIZE];

    memset(syslog.hostname, 'h', sizeof(syslog.hostname) - 1);
    memset(syslog.tag, 't', sizeof(syslog.tag) - 1);
    ck_assert_uint_lt(syslog_header(&syslog, LOG_DEBUG, &clock, header).length, SYSLOG_HEADER_SIZE);
    ck_assert(str_ends(str_from(header), STR(" - - ")));
}
END_TEST

static const char *received(int fd)
{
    static char text[4096];
    ssize_t length = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    text[length > 0 ? length : 0] = '\0';
    return text;
}

static int bound_udp(struct syslog *syslog)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)},
                              .sin_port = ((struct sockaddr_in *)&syslog->address.socket)->sin_port};
    socklen_t length = sizeof(syslog->address.socket);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&syslog->address.socket, &length), 0);
    syslog->address.length = length;
    return fd;
}

/* The loss of a datagram is reported with the next one, which is sent. */
START_TEST(udp_recovers_without_connecting_again)
{
    struct syslog syslog = {0};
    int receiver = bound_udp(&syslog);
    int fd = syslog_open(&syslog);

    ck_assert_int_ge(fd, 0);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    ck_assert_int_lt(syslog_send(fd, STR("unconnected")), 0);
    ck_assert_int_eq(syslog_connect(fd, &syslog), 0);
    ck_assert_int_eq(syslog_send(fd, STR("one")), 0);
    ck_assert_str_eq(received(receiver), "one");
    close(receiver);
    ck_assert_int_eq(syslog_send(fd, STR("lost")), 0);
    ck_assert_int_eq(syslog_send(fd, STR("lost too")), -ECONNREFUSED);
    receiver = bound_udp(&syslog);
    ck_assert_int_eq(syslog_send(fd, STR("two")), -ECONNREFUSED);
    ck_assert_str_eq(received(receiver), "two");
    ck_assert_int_eq(syslog_send(fd, STR("three")), 0);
    ck_assert_str_eq(received(receiver), "three");
    close(receiver);
    close(fd);
}
END_TEST

static int bound_unix(const struct syslog *syslog)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&syslog->address.socket, syslog->address.length), 0);
    return fd;
}

/* A Unix socket needs connect() again; a copy of the descriptor is connected with it. A full receiver never blocks. */
START_TEST(unix_sockets_are_connected_again)
{
    char directory[] = "/tmp/test_syslog.XXXXXX", path[128];
    struct syslog syslog;
    int receiver, fd, copy, sent = 0;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "unix:%s/log", directory);
    ck_assert_int_eq(syslog_address_parse(str_from(path), &syslog.address), 0);
    fd = syslog_open(&syslog);
    copy = dup(fd);
    ck_assert_int_eq(syslog_connect(fd, &syslog), -ENOENT);
    receiver = bound_unix(&syslog);
    ck_assert_int_eq(syslog_connect(fd, &syslog), 0);
    ck_assert_int_eq(syslog_send(copy, STR("one")), 0);
    ck_assert_str_eq(received(receiver), "one");
    close(receiver);
    unlink(path + 5);
    ck_assert_int_lt(syslog_send(copy, STR("lost")), 0);
    ck_assert_int_eq(syslog_connect(fd, &syslog), -ENOENT);
    receiver = bound_unix(&syslog);
    ck_assert_int_lt(syslog_send(copy, STR("lost too")), 0);
    ck_assert_int_eq(syslog_connect(fd, &syslog), 0);
    ck_assert_int_eq(syslog_send(copy, STR("two")), 0);
    ck_assert_str_eq(received(receiver), "two");
    while (sent < 100000 && syslog_send(copy, STR("fill")) == 0)
        sent++;
    ck_assert_int_lt(sent, 100000);
    ck_assert_int_eq(syslog_send(copy, STR("full")), -EAGAIN);
    close(receiver);
    close(fd);
    close(copy);
    unlink(path + 5);
    rmdir(directory);
}
END_TEST

int main(void)
{
    return run_tests("syslog", (const TTest *const[]){addresses_are_parsed, tags_and_facilities_are_parsed,
                                                      headers_have_the_forms_of_both_standards,
                                                      journal_has_the_length_of_the_text, longest_header_fits,
                                                      udp_recovers_without_connecting_again,
                                                      unix_sockets_are_connected_again, NULL});
}
