#include "master/upgrade.h"

#include "../runner.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST 40 /* descriptors above those of the test program */

static void discard(void *owner, enum log_level level, struct str line)
{
}

static struct log quiet_log = {.level = LOG_NOTICE, .sink = discard};

/* Takes what a variable "PREDECESSOR;READY;STATE;SLOTS;SOCKET..." names. */
static struct listen_fds *inherit(const char *predecessor, const char *others, struct upgrade *out_upgrade)
{
    struct listen_fds *passed;
    char text[128];

    snprintf(text, sizeof(text), "%s%s", predecessor, others);
    setenv(UPGRADE_VARIABLE, text, 1);
    passed = upgrade_inherit(out_upgrade, &quiet_log);
    ck_assert_ptr_null(getenv(UPGRADE_VARIABLE));
    return passed;
}

static const char *parent(void)
{
    static char text[32];

    snprintf(text, sizeof(text), "%ld", (long)getppid());
    return text;
}

static void open_listener(int number)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(dup2(fd, number), number);
    close(fd);
}

START_TEST(descriptors_of_the_parent_are_taken)
{
    struct upgrade upgrade;
    struct listen_fds *passed;

    open_listener(FIRST);
    open_listener(FIRST + 1);
    ck_assert_int_eq(dup2(STDERR_FILENO, FIRST + 2), FIRST + 2);
    ck_assert_int_eq(dup2(STDERR_FILENO, FIRST + 3), FIRST + 3);
    passed = inherit(parent(), ";42;43;2;40;41", &upgrade);
    ck_assert_ptr_nonnull(passed);
    ck_assert_int_eq(upgrade.predecessor, getppid());
    ck_assert_int_eq(upgrade.ready_fd, FIRST + 2);
    ck_assert_int_eq(upgrade.state_fd, FIRST + 3);
    ck_assert_uint_eq(listen_fds_sockets(passed)->endpoints, 2);
    for (int fd = FIRST; fd < FIRST + 4; fd++)
        ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    upgrade_close(&upgrade);
    ck_assert_int_lt(fcntl(FIRST + 2, F_GETFD), 0);
    listen_fds_finish(passed, NULL, false, &quiet_log);
}
END_TEST

START_TEST(variables_of_another_process_are_ignored)
{
    static const char *const values[] = {"", ";", "x", "0", "-1", "1;40;40;1;40", "99999999999999999999;40;40;1;40",
                                         "2147483648;40"};

    open_listener(FIRST);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct upgrade upgrade;

        if (getppid() == 1 && values[i][0] == '1')
            continue;
        ck_assert_ptr_null(inherit(values[i], "", &upgrade));
        ck_assert_int_eq(upgrade.predecessor, 0);
        ck_assert_int_eq(upgrade.ready_fd, -1);
        ck_assert_int_eq(upgrade.state_fd, -1);
        ck_assert_int_eq(fcntl(FIRST, F_GETFD), 0); /* untouched */
    }
    unsetenv(UPGRADE_VARIABLE);
    close(FIRST);
}
END_TEST

/* Numbers that are no descriptors, standard streams, and numbers of slots that no master has. */
START_TEST(malformed_variables_name_nothing)
{
    static const char *const values[] = {"", ";;;;", ";x;y;z;w", ";0;1;1;2", ";-1;-1;-1;", ";900;901;1;902",
                                         ";900;901;0;40", ";900;901;999999999;40", ";900;901;1;40x"};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct upgrade upgrade;

        open_listener(FIRST);
        ck_assert_msg(inherit(parent(), values[i], &upgrade) == NULL, "%s", values[i]);
        ck_assert_int_eq(upgrade.predecessor, getppid());
        ck_assert_int_eq(upgrade.ready_fd, -1);
        ck_assert_int_eq(upgrade.state_fd, -1);
        close(FIRST);
    }
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
}
END_TEST

/* The state file is closed when it has been read: a socket with its number would then be another descriptor. */
START_TEST(descriptors_are_taken_once)
{
    struct upgrade upgrade;
    struct listen_fds *passed;

    open_listener(FIRST);
    ck_assert_int_eq(dup2(STDERR_FILENO, FIRST + 1), FIRST + 1);
    passed = inherit(parent(), ";41;41;2;40;40;41", &upgrade);
    ck_assert_int_eq(upgrade.ready_fd, FIRST + 1);
    ck_assert_int_eq(upgrade.state_fd, -1);
    ck_assert_int_eq(sockets_get(listen_fds_sockets(passed), 0, 0), FIRST);
    ck_assert_int_eq(sockets_get(listen_fds_sockets(passed), 0, 1), -1);
    ck_assert_int_ge(fcntl(FIRST + 1, F_GETFD), 0);
    upgrade_close(&upgrade);
    listen_fds_finish(passed, NULL, false, &quiet_log);
}
END_TEST

int main(void)
{
    return run_tests("upgrade", (const TTest *const[]){descriptors_of_the_parent_are_taken,
                                                  variables_of_another_process_are_ignored,
                                                  malformed_variables_name_nothing,
                                                  descriptors_are_taken_once, NULL});
}
