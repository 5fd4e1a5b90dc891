#include "master/service.h"

#include "../runner.h"

#include "base/limits.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Sets a variable; NULL removes it. */
static void set(const char *name, const char *value)
{
    ck_assert_int_eq(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static bool open_with(const char *timeout, const char *owner, struct watchdog *out)
{
    set("WATCHDOG_USEC", timeout);
    set("WATCHDOG_PID", owner);
    return watchdog_open(out);
}

/* The socket of a service manager, with an abstract name or a path. */
static int listen_as_manager(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    memcpy(address.sun_path, name, strlen(name));
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))), 0);
    set("NOTIFY_SOCKET", name);
    return fd;
}

static void expect(int fd, const char *message)
{
    char text[64];
    ssize_t length = recv(fd, text, sizeof(text), 0);

    ck_assert_int_eq(length, (ssize_t)strlen(message));
    ck_assert_mem_eq(text, message, strlen(message));
}

static void expect_nothing(int fd)
{
    char text[64];

    ck_assert_int_eq(recv(fd, text, sizeof(text), 0), -1);
}

START_TEST(interval_is_half_of_the_timeout)
{
    struct watchdog watchdog;
    char pid[32];

    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    ck_assert(open_with("30000000", pid, &watchdog));
    ck_assert_uint_eq(watchdog.interval_ms, 15000);
    ck_assert(open_with("30000000", NULL, &watchdog));
    ck_assert_uint_eq(watchdog.interval_ms, 15000);
    ck_assert(open_with("1", NULL, &watchdog));
    ck_assert_uint_eq(watchdog.interval_ms, LIMIT_WATCHDOG_INTERVAL_MS_MIN);
    ck_assert(open_with("18446744073709551615", NULL, &watchdog));
    ck_assert_uint_eq(watchdog.interval_ms, LIMIT_WATCHDOG_INTERVAL_MS_MAX);
}
END_TEST

START_TEST(is_off_without_timeout_or_for_another_process)
{
    struct watchdog watchdog;

    ck_assert(open_with(NULL, NULL, &watchdog));
    ck_assert_uint_eq(watchdog.interval_ms, 0);
    ck_assert_int_eq(watchdog_next_ms(&watchdog, 5), -1);
    ck_assert(open_with("30000000", "1", &watchdog));
    ck_assert_uint_eq(watchdog.interval_ms, 0);
    watchdog_pass_on();
    ck_assert(watchdog_open(&watchdog));
    ck_assert_uint_eq(watchdog.interval_ms, 15000);
}
END_TEST

START_TEST(malformed_values_are_rejected)
{
    static const char *const malformed[] = {"", "0", "-1", " 1", "+1", "1s", "1.5", "18446744073709551616", "x"};
    struct watchdog watchdog;

    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        ck_assert(!open_with(malformed[i], NULL, &watchdog));
        ck_assert_uint_eq(watchdog.interval_ms, 0);
        ck_assert(!open_with("30000000", malformed[i], &watchdog));
        ck_assert_uint_eq(watchdog.interval_ms, 0);
    }
}
END_TEST

START_TEST(sends_a_message_when_it_is_due)
{
    struct watchdog watchdog = {.interval_ms = 100};
    char name[64];
    int fd;

    snprintf(name, sizeof(name), "@test_service.%ld", (long)getpid());
    fd = listen_as_manager(name);
    ck_assert_int_eq(watchdog_next_ms(&watchdog, 1000), 0);
    watchdog_check(&watchdog, 1000);
    expect(fd, "WATCHDOG=1");
    ck_assert_int_eq(watchdog_next_ms(&watchdog, 1001), 99);
    watchdog_check(&watchdog, 1099);
    expect_nothing(fd);
    watchdog_check(&watchdog, 1100);
    expect(fd, "WATCHDOG=1");
    /* A clock that is behind sends no message for a time longer than the interval. */
    ck_assert_int_eq(watchdog_next_ms(&watchdog, 5), 100);
    close(fd);
    watchdog_check(&watchdog, 2000); /* no service manager listens */
    ck_assert_int_eq(watchdog_next_ms(&watchdog, 2000), 100);
}
END_TEST

START_TEST(notifies_a_path_and_ignores_other_names)
{
    char name[200];
    int fd;

    snprintf(name, sizeof(name), "/tmp/test_service.%ld", (long)getpid());
    fd = listen_as_manager(name);
    service_notify("READY=1");
    expect(fd, "READY=1");
    set("NOTIFY_SOCKET", "relative");
    service_notify("READY=1");
    set("NOTIFY_SOCKET", "/");
    service_notify("READY=1");
    set("NOTIFY_SOCKET", NULL);
    service_notify("READY=1");
    expect_nothing(fd);
    unlink(name);
    memset(name, 'x', sizeof(name));
    name[0] = '/';
    name[sizeof(name) - 1] = '\0';
    set("NOTIFY_SOCKET", name);
    service_notify("READY=1");
    expect_nothing(fd);
    close(fd);
}
END_TEST

int main(void)
{
    return run_tests("service", (const TTest *const[]){
                                    interval_is_half_of_the_timeout, is_off_without_timeout_or_for_another_process,
                                    malformed_values_are_rejected, sends_a_message_when_it_is_due,
                                    notifies_a_path_and_ignores_other_names, NULL});
}
