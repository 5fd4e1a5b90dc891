/*
 * The new master's part of an upgrade.
 */
#include "base/limits.h"
#include "master/master_state.h"
#include "master/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Removes the next number from the text, and returns it. -1: there is none. */
static int next_number(struct str *text)
{
    uint64_t number = 0;

    if (str_empty(*text) || str_to_u64(str_cut(text, ';'), &number) < 0 || number > INT32_MAX)
        return -1;
    return (int)number;
}

/*
 * Reads the number of a descriptor, and makes the descriptor close-on-exec. -1: it is not an open descriptor above 2,
 * or it was read before.
 */
static int next_descriptor(struct str *text)
{
    int fd = next_number(text);

    return fd > STDERR_FILENO && fcntl(fd, F_GETFD) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}

static struct listen_fds *parse_inherited_sockets(struct str text, struct log *log)
{
    int slots = next_number(&text);
    size_t count = 0, max = text.length / 2 + 1;
    int *fds = slots > 0 && slots <= LIMIT_WORKERS ? calloc(max, sizeof(*fds)) : NULL;
    struct listen_fds *passed;

    while (fds && count < max && !str_empty(text)) {
        int fd = next_descriptor(&text);

        if (fd >= 0)
            fds[count++] = fd;
    }
    passed = listen_fds_adopt(fds, count, slots > 0 ? (unsigned)slots : 0, log);
    free(fds);
    return passed;
}

struct listen_fds *upgrade_inherit(struct upgrade *upgrade, struct log *log)
{
    const char *value = getenv(UPGRADE_VARIABLE);
    struct str text = value ? str_from(value) : STR("");
    struct listen_fds *passed;
    int predecessor = next_number(&text);

    *upgrade = (struct upgrade){.report_fd = -1, .ready_fd = -1, .state_fd = -1};
    /* A variable of another process names descriptors that do not exist here. */
    if (predecessor <= 0 || predecessor != getppid()) {
        unsetenv(UPGRADE_VARIABLE);
        return NULL;
    }
    upgrade->predecessor = predecessor;
    upgrade->ready_fd = next_descriptor(&text);
    upgrade->state_fd = next_descriptor(&text);
    passed = parse_inherited_sockets(text, log);
    unsetenv(UPGRADE_VARIABLE);
    return passed;
}

void upgrade_inherit_tickets(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    struct upgrade_state state = {.size = 0};

    if (upgrade->predecessor > 0)
        __atomic_store_n(&master->shared->replay_window.closed, 1, __ATOMIC_RELEASE);
    if (upgrade->state_fd < 0)
        return;
    if (pread(upgrade->state_fd, &state, sizeof(state), 0) == (ssize_t)sizeof(state) && state.size == sizeof(state)) {
        master->shared->tickets = state.tickets;
        master->tickets_generated_ms = state.tickets_generated_ms;
    } else {
        log_write(&master->error_log.log, LOG_NOTICE, "upgrade: sessions of the previous version cannot be resumed");
    }
    OPENSSL_cleanse(&state, sizeof(state));
    /* Erases the keys. The predecessor has closed its descriptor, so no other process reads the memory. */
    if (pwrite(upgrade->state_fd, &state, sizeof(state), 0) < 0)
        errno = 0;
    close(upgrade->state_fd);
    upgrade->state_fd = -1;
}

void upgrade_report(struct upgrade *upgrade)
{
    if (upgrade->ready_fd < 0)
        return;
    if (send(upgrade->ready_fd, "1", 1, MSG_NOSIGNAL) != 1)
        errno = 0; /* the predecessor has exited */
}

/* Early data that the predecessor's workers recorded could be replayed here until the records expire. */
void upgrade_read_predecessor(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    char byte;

    if (upgrade->ready_fd < 0 || read(upgrade->ready_fd, &byte, 1) != 0)
        return;
    close(upgrade->ready_fd);
    upgrade->ready_fd = -1;
    upgrade->predecessor = 0;
    upgrade->early_data_from_ms = master->clock.monotonic_ms + LIMIT_EARLY_S * 1000;
    log_write(&master->error_log.log, LOG_NOTICE, "upgrade: the previous master is exiting");
}
