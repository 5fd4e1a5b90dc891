/*
 * What the files of the master share: master.c (start, signals, end), generation.c (a
 * configuration with what lives and dies with it) and children.c (its workers: fork, restart,
 * messages). Nobody else includes this.
 */
#ifndef MASTER_MASTER_STATE_H
#define MASTER_MASTER_STATE_H

#include "base/clock.h"
#include "base/list.h"
#include "master/channel.h"
#include "master/master.h"
#include "master/pid_file.h"
#include "master/privileges.h"
#include "master/shared.h"
#include "master/sockets.h"

enum phase {
    PHASE_STARTING,                 /* not every worker has said that it is ready */
    PHASE_RUNNING,
    PHASE_QUITTING,                 /* QUIT, or a reload: workers finish what is open */
    PHASE_STOPPING,                 /* TERM, INT, or a start that failed */
};

/* One worker's place. The place stays, processes come and go. */
struct child {
    pid_t pid;                      /* 0: none */
    int place;                      /* in shared memory; -1: given back */
    int channel_fd;                 /* -1: none */
    struct list queued;             /* messages that wait for room in the channel */
    bool ready;
    int acceptor;                     /* the worker that accepts from its sockets meanwhile; -1: none */
    unsigned deaths;                /* in a row, each soon after its start */
    uint64_t started_ms;
    uint64_t restart_ms;            /* when the next one is to be started; 0: not planned */
};

/* One configuration, and all that lives and dies with it. */
struct generation {
    struct list link;               /* in master->generations */
    struct configuration *configuration; /* owned */
    struct sockets sockets;
    struct identity identity;
    struct child *children;
    unsigned child_count;
    enum phase phase;
    uint64_t files_seen_ms;         /* when the files of TLS were looked at */
    uint64_t kill_ms;               /* when workers that do not end are killed; 0: not */
};

struct master {
    const struct master_start *start;
    struct clock clock;             /* read once per round */
    struct error_log error_log;
    struct shared *shared;
    struct pid_file pid_file;
    struct list generations;        /* the oldest first */
    struct generation *current;     /* which serves; NULL: none does yet */
    struct generation *coming;      /* which starts, to take its place; NULL: none */
    bool reload_again;              /* HUP came while one was starting */
    bool is_root;
    int signal_fd;
    int report_fd;                  /* daemon: the launching command waits there; -1: nobody */
    bool detached;                  /* daemon: there is no terminal */
    bool ktls_probed;
    uint64_t tickets_drawn_ms;      /* when the key that seals session tickets was drawn */
    bool ending;                    /* TERM, INT or QUIT */
    bool failed;                    /* the start failed: exit 1 */
};

/*
 * Everything of a configuration up to the first fork: logs, sockets, places for its workers. Owns `configuration`. NULL after it has been said
 * why; then nothing of the running ones has changed, but for the error log.
 */
struct generation *generation_open(struct master *master, struct configuration *configuration);
/* Goes on with the error log that it names. 0 or -errno, said. */
MUST_CHECK int generation_use_error_log(struct master *master, const struct generation *generation);
/* All its workers have ended: lets go of it. */
void generation_close(struct master *master, struct generation *generation);
/* A log that `path` names, as a master's who may have no terminal. A descriptor or -errno. */
int generation_open_log(const struct master *master, struct str path);
/* Where a generation's error log goes. */
struct str generation_error_log(const struct master *master, const struct generation *generation);

/* Its sessions' tickets are sealed with the keys that all generations share; draws the first one. 0 or -EIO, said. */
MUST_CHECK int master_tickets_open(struct master *master, struct generation *generation);
/* Draws the next key where it is time. */
void master_tickets_check(struct master *master);
/* Milliseconds until then, or -1: never. */
int master_tickets_next_ms(const struct master *master);

/* Looks at the files of TLS where it is time, and gives workers what has changed. */
void master_files_check(struct master *master);
/* Milliseconds until then, or -1: never. */
int master_files_next_ms(const struct master *master);

/* Starts every worker whose time has come. In the new process this function does not return. */
void children_start(struct master *master, struct generation *generation);
/* Reads what a worker says. */
void child_read(struct master *master, struct generation *generation, struct child *child);
/* Tells it what there was no room for: there is some now. */
void child_write(struct master *master, struct child *child);
/* A channel is closed, and what was not told is forgotten. */
void child_channel_close(struct child *child);
/* Collects the dead of all generations, and plans their successors. */
void children_reap(struct master *master);
/* Sends one message to every worker. */
void children_send(struct master *master, struct generation *generation, enum channel_kind kind, uint32_t index, int fd);
void children_kill(struct master *master, struct generation *generation);
/* Milliseconds until a successor is due, or -1. */
int children_next_ms(const struct master *master, const struct generation *generation);
unsigned children_alive(const struct generation *generation);
bool children_ready(const struct generation *generation);

#endif
