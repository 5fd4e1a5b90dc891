/*
 * Descriptors that another process passes: the lines of the input are LISTEN_PID, LISTEN_FDS and the variable of an
 * upgrade, in which "P" stands for the number of the process; the rest is the state of the upgrade. Every named
 * descriptor has one owner afterwards or is closed, others are untouched, the variables are removed, and ticket keys
 * are taken from a complete state only, which is erased.
 */
#include "fuzz.h"

#include "base/limits.h"
#include "master/master_state.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONGEST_LINE 500
#define FIRST        40 /* the descriptors that are passed: above those of the program */

enum passed { LISTENER, OTHER_LISTENER, TCP_LISTENER, LISTENER_AGAIN, DATAGRAMS, PIPE, CONNECTION, MEMORY, PASSED };

static int originals[PASSED];
static unsigned lines;

static void count_line(void *owner, enum log_level level, struct str line)
{
    lines++;
}

static struct log counting_log = {.level = LOG_NOTICE, .sink = count_line};

/* Of a Unix socket, the kernel chooses the name. */
static int open_listener(int family)
{
    struct sockaddr_in address = {.sin_family = (sa_family_t)family, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = family == AF_UNIX ? sizeof(sa_family_t) : sizeof(address);

    HOLDS(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 1) == 0);
    return fd;
}

static void open_originals(void)
{
    int ends[2];

    if (originals[0] > 0)
        return;
    originals[LISTENER] = originals[LISTENER_AGAIN] = open_listener(AF_UNIX);
    originals[OTHER_LISTENER] = open_listener(AF_UNIX);
    originals[TCP_LISTENER] = open_listener(AF_INET);
    originals[DATAGRAMS] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    HOLDS(pipe2(ends, O_CLOEXEC) == 0);
    originals[PIPE] = ends[0];
    HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    originals[CONNECTION] = ends[0];
    originals[MEMORY] = memfd_create("state", MFD_CLOEXEC);
    HOLDS(originals[DATAGRAMS] >= 0 && originals[MEMORY] >= 0);
}

/* Those of the program are not passed: execve() would have closed them. */
static void pass_descriptors(void)
{
    open_originals();
    for (int fd = STDERR_FILENO + 1; fd < FIRST; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < PASSED; i++)
        HOLDS(dup2(originals[i], FIRST + i) == FIRST + i);
    lines = 0;
}

static void close_descriptors(void)
{
    for (int i = 0; i < PASSED; i++)
        close(FIRST + i);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Passes a text to setenv, in which a "P" at the beginning stands for a number. */
static void set_variable(const char *name, struct str text, pid_t process)
{
    char value[LONGEST_LINE + 32];
    bool has_mark = str_starts(text, STR("P"));
    int length = has_mark ? snprintf(value, sizeof(value), "%ld", (long)process) : 0;

    snprintf(value + length, sizeof(value) - (size_t)length, STR_FMT, STR_ARG(str_skip(text, has_mark)));
    HOLDS(setenv(name, value, 1) == 0);
}

/* Reads the digits of a number up to `max`; -1: it is none. */
static long read_number(const char *text, size_t length, long max)
{
    long number = length > 0 ? 0 : -1;

    for (size_t i = 0; i < length && number >= 0; i++) {
        number = text[i] >= '0' && text[i] <= '9' ? 10 * number + text[i] - '0' : -1;
        if (number > max)
            number = -1;
    }
    return number;
}

/* What becomes of each descriptor. */
struct outcome {
    bool taken[PASSED], kept[PASSED]; /* kept: as a listening socket */
};

static bool is_listener(int i)
{
    return i == LISTENER || i == OTHER_LISTENER || i == TCP_LISTENER || i == LISTENER_AGAIN;
}

/* An address has so many slots; further sockets of it are closed. */
static void take_socket(struct outcome *outcome, int i, long slots)
{
    bool is_full = slots == 1 && ((i == LISTENER && outcome->kept[LISTENER_AGAIN]) ||
                                  (i == LISTENER_AGAIN && outcome->kept[LISTENER]));

    outcome->taken[i] = true;
    outcome->kept[i] = is_listener(i) && !is_full;
}

static unsigned occurrences(const struct sockets *sockets, int fd)
{
    unsigned count = 0;

    for (size_t i = 0; sockets && i < sockets->endpoints * sockets->slots; i++)
        count += sockets->fds[i] == fd;
    return count;
}

static void check_sockets(const struct outcome *outcome, struct listen_fds *passed)
{
    const struct sockets *sockets = listen_fds_sockets(passed);
    unsigned kept = 0, all = 0;

    for (int i = 0; i < PASSED; i++) {
        HOLDS(occurrences(sockets, FIRST + i) == outcome->kept[i]);
        HOLDS(is_open(FIRST + i) == (outcome->kept[i] || !outcome->taken[i]));
        HOLDS(!is_open(FIRST + i) || fcntl(FIRST + i, F_GETFD) == (outcome->taken[i] ? FD_CLOEXEC : 0));
        kept += outcome->kept[i];
    }
    for (size_t i = 0; sockets && i < sockets->endpoints * sockets->slots; i++)
        all += sockets->fds[i] >= 0;
    HOLDS(all == kept);
    listen_fds_finish(passed, NULL, true, NULL);
    for (int i = 0; i < PASSED; i++)
        HOLDS(!outcome->kept[i] || !is_open(FIRST + i));
}

/* Socket activation passes the first descriptors. */
static void check_activation(struct str process, struct str count)
{
    struct outcome outcome = {{false}, {false}};
    struct listen_fds *passed;
    const char *value;
    unsigned kept = 0;
    long number;

    pass_descriptors();
    set_variable("LISTEN_PID", process, getpid());
    set_variable("LISTEN_FDS", count, 0);
    HOLDS(setenv("LISTEN_FDNAMES", "name", 1) == 0);
    value = getenv("LISTEN_PID");
    number = read_number(value, strlen(value), INT32_MAX);
    value = getenv("LISTEN_FDS");
    number = number == (long)getpid() ? read_number(value, strlen(value), LIMIT_LISTEN_FDS) : 0;
    passed = listen_fds_take(FIRST, &counting_log);
    HOLDS(!getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES"));
    HOLDS((passed != NULL) == (number > 0));
    for (int i = 0; i < PASSED && i < number; i++) {
        take_socket(&outcome, i, 1);
        kept += outcome.kept[i];
    }
    HOLDS(lines == (number < 0 ? 1 : (unsigned)number - kept));
    check_sockets(&outcome, passed);
    close_descriptors();
}

/* Cuts a field of the variable off: a passed descriptor that has no owner yet; -1: none. */
static int take_field(struct str *rest, struct outcome *outcome)
{
    struct str field = str_cut(rest, ';');
    long i = read_number(field.data, field.length, INT32_MAX) - FIRST;

    if (i < 0 || i >= PASSED || outcome->taken[i])
        return -1;
    outcome->taken[i] = true;
    return FIRST + (int)i;
}

/* The keys are in use only if the whole state was passed. It is erased. */
static void check_state(struct master *master, struct str state, bool is_passed)
{
    static struct upgrade_state expected, erased, left;
    struct ticket_keys before = master->shared->tickets;
    bool is_complete = is_passed && state.length >= sizeof(expected);

    if (is_complete)
        memcpy(&expected, state.data, sizeof(expected));
    is_complete = is_complete && expected.size == sizeof(expected);
    upgrade_inherit_tickets(master);
    HOLDS(master->upgrade.state_fd == -1);
    HOLDS(memcmp(&master->shared->tickets, is_complete ? &expected.tickets : &before, sizeof(before)) == 0);
    HOLDS(!is_complete || master->tickets_generated_ms == expected.tickets_generated_ms);
    HOLDS(!is_passed || (pread(originals[MEMORY], &left, sizeof(left), 0) == (ssize_t)sizeof(left) &&
                         memcmp(&left, &erased, sizeof(left)) == 0));
}

/* What becomes of the descriptors that the variable names. Returns the number of those that are passed as sockets. */
static unsigned expect_upgrade(struct str variable, struct upgrade *out, struct outcome *outcome)
{
    struct str predecessor = str_cut(&variable, ';'), field;
    unsigned count = 0;
    long slots;

    *out = (struct upgrade){.ready_fd = -1, .state_fd = -1};
    if (read_number(predecessor.data, predecessor.length, INT32_MAX) != (long)getppid() || getppid() == 0)
        return 0;
    out->predecessor = getppid();
    out->ready_fd = take_field(&variable, outcome);
    out->state_fd = take_field(&variable, outcome);
    field = str_cut(&variable, ';');
    slots = read_number(field.data, field.length, LIMIT_WORKERS);
    while (slots > 0 && variable.data) {
        int fd = take_field(&variable, outcome);

        if (fd < 0)
            continue;
        take_socket(outcome, fd - FIRST, slots);
        count++;
    }
    return count;
}

static void check_upgrade(struct str variable, struct str state)
{
    static struct master master;
    struct outcome outcome = {{false}, {false}};
    char copy[LONGEST_LINE + 32];
    struct upgrade expected;
    struct listen_fds *passed;
    unsigned count;

    pass_descriptors();
    master.shared = master.shared ? master.shared : shared_create(1);
    master.error_log.log = counting_log;
    HOLDS(master.shared && ftruncate(originals[MEMORY], 0) == 0);
    HOLDS(pwrite(originals[MEMORY], state.data, state.length, 0) == (ssize_t)state.length);
    set_variable(UPGRADE_VARIABLE, variable, getppid());
    snprintf(copy, sizeof(copy), "%s", getenv(UPGRADE_VARIABLE));
    count = expect_upgrade(str_from(copy), &expected, &outcome);
    passed = upgrade_inherit(&master.upgrade, &counting_log);
    HOLDS(!getenv(UPGRADE_VARIABLE) && (passed != NULL) == (count > 0));
    HOLDS(master.upgrade.predecessor == expected.predecessor && master.upgrade.ready_fd == expected.ready_fd);
    HOLDS(master.upgrade.state_fd == expected.state_fd && master.upgrade.report_fd == -1);
    check_state(&master, state, expected.state_fd == FIRST + MEMORY);
    upgrade_close(&master.upgrade);
    check_sockets(&outcome, passed);
    close_descriptors();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str rest = str_of((const char *)bytes, size);
    struct str process = str_cut(&rest, '\n'), count = str_cut(&rest, '\n'), variable = str_cut(&rest, '\n');

    if (process.length > LONGEST_LINE || count.length > LONGEST_LINE || variable.length > LONGEST_LINE)
        return 0;
    check_activation(process, count);
    check_upgrade(variable, rest);
    return 0;
}
