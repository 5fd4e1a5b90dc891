/*
 * A master with one worker for unit tests: a forked process that sleeps, or runs a function, and a log that is kept.
 */
#ifndef TEST_UNIT_MASTER_CHILDREN_H
#define TEST_UNIT_MASTER_CHILDREN_H

#include "master/master_state.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct one_worker {
    struct core_main main;
    struct configuration configuration;
    struct child child;
    struct generation generation;
    struct master master;
    char log[4096];
    int worker_end;                 /* the worker's end of the channel */
};

static inline void append_line(void *owner, enum log_level level, struct str line)
{
    struct one_worker *made = owner;
    size_t length = strlen(made->log);

    snprintf(made->log + length, sizeof(made->log) - length, STR_FMT, STR_ARG(line));
}

static inline unsigned count_text(const char *text, const char *part)
{
    unsigned count = 0;

    while ((text = strstr(text, part))) {
        text += strlen(part);
        count++;
    }
    return count;
}

/* `run` (NULL: sleeps) gets the worker's end of the channel, and must not return. */
static inline struct one_worker *one_worker_start(void (*run)(int channel_fd))
{
    struct one_worker *made = calloc(1, sizeof(*made));

    made->main.worker_heartbeat_timeout_ms = 1000;
    made->configuration.main = &made->main;
    made->generation = (struct generation){
        .configuration = &made->configuration, .children = &made->child, .child_count = 1, .phase = PHASE_RUNNING,
        .exporter.channel_fd = -1};
    made->child = (struct child){.acceptor = -1};
    list_init(&made->child.queued);
    list_init(&made->master.generations);
    list_push(&made->master.generations, &made->generation.link);
    made->master.error_log.log = (struct log){.level = LOG_INFO, .sink = append_line, .owner = made};
    made->master.shared = shared_create(1);
    made->master.clock.monotonic_ms = made->child.heartbeat_ms = made->child.started_ms = 1000000;
    ck_assert_ptr_nonnull(made->master.shared);
    ck_assert_int_eq(channel_open(&made->child.channel_fd, &made->worker_end), 0);
    made->child.pid = fork();
    ck_assert_int_ge(made->child.pid, 0);
    if (made->child.pid > 0)
        return made;
    if (run)
        run(made->worker_end);
    for (;;)
        pause();
}

/* Returns the signal that ended the worker; 0: it still runs. */
static inline int one_worker_signal(const struct one_worker *made)
{
    int status;

    return waitpid(made->child.pid, &status, WNOHANG) == made->child.pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Waits for the worker's end. Returns the signal that ended it. */
static inline int one_worker_end(struct one_worker *made)
{
    int status;

    ck_assert_int_eq(waitpid(made->child.pid, &status, 0), made->child.pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static inline void one_worker_free(struct one_worker *made)
{
    child_channel_close(&made->child);
    close(made->worker_end);
    shared_destroy(made->master.shared);
    free(made);
}

#endif
