/*
 * What the files of the master share: master.c (start, signals, end) and
 * children.c (workers: fork, restart, messages). Nobody else includes this.
 */
#ifndef SERVER_MASTER_STATE_H
#define SERVER_MASTER_STATE_H

#include "base/clock.h"
#include "server/channel.h"
#include "server/master.h"
#include "server/pid_file.h"
#include "server/privileges.h"
#include "server/shared.h"
#include "server/sockets.h"

enum master_phase {
    MASTER_STARTING,                /* not every worker has said that it is ready */
    MASTER_RUNNING,
    MASTER_QUITTING,                /* QUIT: workers finish what is open */
    MASTER_STOPPING,                /* TERM, INT, or a start that failed */
};

/* One worker's place. The place stays, processes come and go. */
struct child {
    pid_t pid;                      /* 0: none */
    int channel_fd;                 /* -1: none */
    bool ready;
    int keeper;                     /* the worker that accepts from its sockets meanwhile; -1: none */
    unsigned deaths;                /* in a row, each soon after its start */
    uint64_t started_ms;
    uint64_t restart_ms;            /* when the next one is to be started; 0: not planned */
};

struct master {
    const struct master_start *start;
    struct configuration *configuration;
    struct clock clock;             /* read once per round */
    struct error_log error_log;
    struct shared *shared;
    struct sockets sockets;
    struct pid_file pid_file;
    struct identity identity;
    bool is_root;
    struct child *children;
    unsigned child_count;
    int signal_fd;
    int report_fd;                  /* daemon: the launching command waits there; -1: nobody */
    bool detached;                  /* daemon: there is no terminal */
    enum master_phase phase;
    uint64_t kill_ms;               /* when workers that do not end are killed; 0: not */
    bool failed;                    /* the start failed: exit 1 */
};

/* Starts every worker whose time has come. In the new process this function does not return. */
void children_start(struct master *master);
/* Reads what a worker says. */
void child_read(struct master *master, struct child *child);
/* Collects the dead, and plans their successors. */
void children_reap(struct master *master);
/* Sends one message to every worker. */
void children_tell(struct master *master, enum channel_kind kind, uint32_t index, int fd);
void children_kill(struct master *master);
/* Milliseconds until a successor is due, or -1. */
int children_next_ms(const struct master *master);
unsigned children_alive(const struct master *master);
bool children_ready(const struct master *master);

#endif
