/*
 * State shared by the files of the master: master.c (start, main loop, end), master_signals.c, master_reload.c (from
 * one generation to the next), generation.c (a configuration with its resources), children.c (its workers: fork,
 * restart), child_run.c (the new process of a worker) and child_messages.c (messages to them). Private to src/master.
 */
#ifndef MASTER_MASTER_STATE_H
#define MASTER_MASTER_STATE_H

#include "base/clock.h"
#include "base/list.h"
#include "base/saturate.h"
#include "master/channel.h"
#include "master/listen_fds.h"
#include "master/master.h"
#include "master/pid_file.h"
#include "master/privileges.h"
#include "master/service.h"
#include "master/shared.h"
#include "master/sockets.h"
#include "master/upgrade.h"

#include <limits.h>
#include <unistd.h>

enum phase {
    PHASE_STARTING,                 /* not every worker is ready */
    PHASE_RUNNING,
    PHASE_QUITTING,                 /* QUIT or a reload: workers complete open requests */
    PHASE_STOPPING,                 /* TERM, INT, or a failed start */
};

enum { CHILD_DELAY_MS = 20 };

/* One worker of a generation; a replacement process reuses the struct. */
struct child {
    pid_t pid;                      /* 0: none */
    int shared_index;               /* in shared memory; -1: released */
    int channel_fd;                 /* -1: none */
    struct list queued;             /* messages not yet sent, because the channel was full */
    bool delayed;                   /* too many descriptors are in flight: `queued` is sent after CHILD_DELAY_MS */
    bool ready;
    uint32_t requests;              /* handled since its start: CHANNEL_DONE */
    int acceptor;                   /* the worker that accepts from its sockets while it is down or hangs; -1: none */
    unsigned failed_starts;         /* consecutive, each soon after its start */
    uint64_t started_ms;
    uint64_t restart_ms;            /* time of the next start; 0: not planned */
    uint64_t heartbeat;             /* last one seen */
    uint64_t heartbeat_ms;          /* time at which it was seen, plus the time in which the master did not run */
    uint64_t kill_ms;               /* a worker that hangs: when it is killed; 0: it does not hang */
    bool traced;                    /* a debugger was found since the last heartbeat, and logged */
    uint64_t queries_ms;            /* start of the period in which this worker sent `queries` */
    unsigned queries;
};

/* The exporter of spans of a generation. */
struct exporter_child {
    pid_t pid;                      /* 0: none */
    int channel_fd;                 /* closing it ends the exporter; -1: none */
    bool ending;                    /* the workers have ended: it is not started again */
    unsigned failures;              /* consecutive unexpected exits */
    uint64_t started_ms;
    uint64_t start_ms;              /* time of the next start; 0: not planned */
    uint64_t kill_ms;               /* when it is killed, because it does not exit; 0: never */
};

/* One configuration with its resources. */
struct generation {
    struct list link;                       /* in master->generations */
    struct configuration *configuration;    /* owned */
    struct sockets sockets;
    struct identity identity;
    struct child *children;
    unsigned child_count;
    enum phase phase;
    /* Of the error log: that of the configuration, unless the control socket has changed it. */
    enum log_level log_level;
    struct exporter_child exporter;
    uint64_t files_checked_ms;              /* last check of the TLS files */
    uint64_t kill_ms;                       /* when remaining workers are killed; 0: never */
};

/* The renewal process, which obtains certificates by ACME. */
struct renewal_child {
    pid_t pid;                      /* 0: none */
    int channel_fd;                 /* -1: none */
    bool enabled;                   /* the current generation has certificates by ACME */
    bool replaced;                  /* it exits when no client runs, and starts again with the present error log */
    unsigned failures;              /* consecutive unexpected exits */
    uint64_t start_ms;              /* time of the next start; 0: not planned */
    uint64_t kill_ms;               /* when it is killed, because it does not exit; 0: never */
};

/* Lines about changes that workers request: of each kind one per second, because a worker may be compromised. */
struct control_lines {
    struct log_limit levels, tickets;
    enum log_level level, level_before; /* requested last; before the first change without a line */
    bool level_waits;                   /* a change of the level has no line yet */
    unsigned ticket_keys;               /* generated without a line */
};

struct master {
    const struct master_args *args;
    struct clock clock;             /* read once per iteration */
    struct error_log error_log;
    char error_log_path[PATH_MAX];  /* of error_log; its generation may have ended */
    struct shared *shared;
    struct pid_file pid_file;
    struct listen_fds *passed;      /* owned; passed sockets until a generation has them, or those kept after WINCH */
    struct upgrade upgrade;
    struct renewal_child renewal;
    struct watchdog watchdog;
    struct list generations;        /* oldest first */
    struct generation *current;     /* accepts connections; NULL: none */
    /* Is starting, and will replace `current`; NULL: none. */
    struct generation *next_generation;
    uint64_t syslog_ms;             /* last connection of syslog receivers; 0: never */
    uint64_t switches;              /* to a new generation: the number of the current configuration */
    uint64_t heartbeats_ms;         /* last check of the heartbeats; 0: never */
    bool reload_again;              /* HUP was received while a generation was starting */
    bool is_root;
    int signal_fd;
    int report_fd;                  /* daemon: pipe to the launching command; -1: none */
    bool detached;                  /* daemon: no terminal */
    bool ktls_probed;
    bool aead_chosen;
    bool ktls_chosen;               /* the choice was made with the engines of aead_setting */
    enum tls_aead aead_setting;     /* of the generation for which it was chosen */
    struct control_lines control_lines;
    uint64_t tickets_generated_ms;  /* when the current session ticket key was generated */
    bool drained;                   /* WINCH: no workers run until HUP */
    bool ending;                    /* TERM, INT or QUIT was received */
    bool failed;                    /* the start failed: exit 1 */
};

/* Returns the milliseconds until a deadline, at most INT_MAX; -1: it is UINT64_MAX, never. */
static inline int master_wait_ms(const struct master *master, uint64_t deadline_ms)
{
    uint64_t left_ms = u64_sub_sat(deadline_ms, master->clock.monotonic_ms);

    if (deadline_ms == UINT64_MAX)
        return -1;
    return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

/* Closes a descriptor unless it is -1, which it is afterwards. */
static inline void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/*
 * Opens everything of a configuration that precedes the first fork: logs, sockets, slots for its workers. Owns
 * `configuration`. Returns NULL after logging the cause; then the running generations are unchanged, except for the
 * error log.
 */
struct generation *generation_open(struct master *master, struct configuration *configuration);
/* Switches to the generation's error log. Returns 0, or -errno after logging it. */
MUST_CHECK int generation_use_error_log(struct master *master, const struct generation *generation);
/* Frees a generation whose workers have all exited. */
void generation_close(struct master *master, struct generation *generation);
/*
 * Opens a log, without using a terminal if the master has none; for a syslog receiver (may be NULL) a socket that is
 * not connected. Returns a descriptor or -errno.
 */
int generation_open_log(const struct master *master, struct str path, const struct syslog *syslog);
/* Returns the path of a generation's error log. */
struct str generation_error_log(const struct master *master, const struct generation *generation);
/* NULL: it is not a syslog receiver. */
const struct syslog *generation_error_syslog(const struct master *master, const struct generation *generation);

/*
 * master_reload.c: HUP. Validates the new configuration and starts its workers; the present ones stay until
 * generation_switch. Logs the outcome.
 */
void master_reload(struct master *master);
/*
 * Every worker of the starting generation accepts connections: it becomes the current one, and the previous one is
 * retired.
 */
void generation_switch(struct master *master);
/* Sends CHANNEL_STOP, CHANNEL_QUIT or CHANNEL_RETIRE to the workers of a generation, and sets its deadline. */
void generation_shutdown(struct master *master, struct generation *generation, enum channel_kind how);
/*
 * Frees a generation whose workers have exited. If it was starting, its start has failed, and the current generation
 * stays in use, if there is one.
 */
void generation_ended(struct master *master, struct generation *generation);

/* master_signals.c: blocks the signals of the master and opens their descriptor. 0 or -errno. */
MUST_CHECK int master_signals_open(struct master *master);
/* Handles the signals that have arrived. */
void master_signals_read(struct master *master);

/* master_syslog.c: connects the error log, or one access log, to its syslog receiver; logs changes of the result. */
void master_syslog_connect(struct master *master);
void master_syslog_connect_target(struct master *master, struct access_log_target *target);
/* Connects all receivers again when that is due. */
void master_syslog_check(struct master *master);
/* The time until then; -1: there is no receiver. */
int master_syslog_next_ms(const struct master *master);

/*
 * Writes the pid file of a configuration. Returns 0, also after a failure to write to the built-in path, which is only
 * logged; -errno, logged, if `pid` is configured.
 */
MUST_CHECK int master_write_pid(struct master *master, const struct configuration *configuration);

/* USR1: opens the logs of all generations again. A log that cannot be opened stays as it is; that is logged. */
void master_reopen_logs(struct master *master);

/*
 * Sets the session ticket keys shared by all generations in the generation's servers; generates the first key. Returns
 * 0, or -EIO after logging it.
 */
MUST_CHECK int master_tickets_open(struct master *master, struct generation *generation);
/* Generates the next key when it is due. */
void master_tickets_check(struct master *master);
/* Returns the milliseconds until then; -1: never. */
int master_tickets_next_ms(const struct master *master);
/* Generates the next key now; the previous one still decrypts. Returns 0, or -EIO after logging it. */
MUST_CHECK int master_tickets_rotate(struct master *master);

/*
 * Chooses the AEAD engine of each cipher, and logs it, if the generation has TLS and the last choice was made for
 * another `ssl_aead`, or none was made. Returns 0.
 */
MUST_CHECK int master_aead_choose(struct master *master, struct generation *generation);

/*
 * Handles a message of a worker that serves the control socket: validates it, applies it to all processes, and sends
 * CHANNEL_DONE; or forwards a query. False, with nothing changed, if this worker may not send it.
 */
MUST_CHECK bool master_control_request(struct master *master, struct generation *generation, struct child *child,
                                       const struct channel_message *message);
/* Writes lines that wait because of the limit of lines per second. */
void master_control_check(struct master *master);
/* Returns the milliseconds until then; -1: none waits. */
int master_control_next_ms(const struct master *master);
/*
 * Forwards a query of the worker to all workers, and sends it the descriptor of their responses, which the master does
 * not read. Drops queries above a rate. False if the worker sends far too many.
 */
MUST_CHECK bool master_query_forward(const struct master *master, struct child *child,
                                     const struct channel_message *message);

/*
 * Probes kernel TLS once, if a server of the generation may use it. -ENOTSUP, logged: `ssl_ktls: on`, and the kernel
 * has none.
 */
MUST_CHECK int master_ktls_probe(struct master *master, struct generation *generation);
/*
 * Measures whether kernel or user space encrypts large bodies, and logs it, if a server of the generation has
 * `ssl_ktls: auto`, the kernel supports a cipher, and this was not done with the present AEAD engines. Returns 0.
 */
MUST_CHECK int master_ktls_choose(struct master *master, struct generation *generation);

/* Checks the TLS files when it is due, and sends changed ones to the workers. */
void master_files_check(struct master *master);
/* Returns the milliseconds until then; -1: never. */
int master_files_next_ms(const struct master *master);

/*
 * Prepares certificates by ACME for a generation that has some: state folder and shared status. Returns 0, or -errno
 * after logging it.
 */
MUST_CHECK int master_acme_open(struct master *master, struct generation *generation);
/* Starts the renewal process of the current generation, after the end of the former one. */
void master_acme_start(struct master *master);
/* Ends the renewal process. */
void master_acme_stop(struct master *master);
/* Replaces it, when no client runs, by a process that has the present error log. */
void master_acme_reopen(struct master *master);
/* Starts or kills the renewal process when it is due. */
void master_acme_check(struct master *master);
/* Returns the milliseconds until then; -1: never. */
int master_acme_next_ms(const struct master *master);
/* Reads its messages: a new certificate is checked at once. */
void master_acme_read(struct master *master);
/* Returns true if `pid` is the renewal process, which has exited. */
bool master_acme_exited(struct master *master, pid_t pid, int status);

/* Maps the queues of spans if the generation has `otel_exporter`. 0, or -errno after logging it. */
MUST_CHECK int master_otlp_open(struct master *master, struct generation *generation);
/* Starts the exporter, if the generation has one. */
void master_otlp_start(struct master *master, struct generation *generation);
/* Starts or kills it when it is due. */
void master_otlp_check(struct master *master, struct generation *generation);
/* Returns the milliseconds until then; -1: never. */
int master_otlp_next_ms(const struct master *master, const struct generation *generation);
/* Replaces it by a process that has the present error log. */
void master_otlp_reopen(struct master *master, struct generation *generation);
/* Called when the workers have ended, until it returns true: the exporter has sent the last spans and exited. */
MUST_CHECK bool master_otlp_end(struct master *master, struct generation *generation);
/* Unmaps the queues. */
void master_otlp_close(struct generation *generation);
/* Returns true if `pid` is an exporter, which has exited. */
bool master_otlp_exited(struct master *master, pid_t pid, int status);

/*
 * In a new process: closes all descriptors of the master except the standard ones and these, of which -1 is none. 0 or
 * -errno.
 */
MUST_CHECK int child_close_others(const int *kept, size_t count);

/* Logs, aborts and finally kills the workers whose heartbeats are missing; their sockets go to other workers. */
void heartbeats_check(struct master *master);
/* Returns the milliseconds until the next check; -1: never. */
int heartbeats_next_ms(const struct master *master);

/*
 * child_run.c: in the new process of worker `number`, closes unused descriptors, runs the worker, and exits.
 * `channel_fd`: the worker's end of the channel; `parent`: the process of the master.
 */
_Noreturn void child_run(struct master *master, struct generation *generation, unsigned number, int channel_fd,
                         pid_t parent);
/* Starts every worker that is due. Does not return in the new process. */
void children_start(struct master *master, struct generation *generation);
/* Reads a worker's messages, at most one request among them. Kills a worker that sends an invalid one. */
void child_read(struct master *master, struct generation *generation, struct child *child);
/* Sends queued messages when the channel has room again, or after CHILD_DELAY_MS. */
void child_write(struct master *master, struct child *child);
/* Closes a channel and discards its queued messages. */
void child_channel_close(struct child *child);
/* Reaps exited workers of all generations and plans their restart. */
void children_reap(struct master *master);
/* Sends one message to a worker. */
void child_send(struct master *master, struct generation *generation, struct child *child, enum channel_kind kind,
                uint32_t index, int fd);
/* Sends one message to every worker. */
void children_send(struct master *master, struct generation *generation, enum channel_kind kind, uint32_t index,
                   int fd);
/* Lets another worker accept from the sockets of a worker that hangs or waits for its restart. */
void child_reassign_sockets(struct master *master, struct generation *generation, unsigned number);
/* Kills the remaining workers of a generation, and logs each. */
void children_kill(struct master *master, struct generation *generation);
/* Returns the milliseconds until a restart is due, or -1. */
int children_next_ms(const struct master *master, const struct generation *generation);
/* Returns the number of its running workers. */
unsigned children_alive(const struct generation *generation);
/* Returns true if every worker accepts connections. */
bool children_ready(const struct generation *generation);

#endif
