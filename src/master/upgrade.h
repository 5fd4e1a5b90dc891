/*
 * Binary upgrade, as in nginx: USR2 starts the new executable beside this master, with its listening sockets and
 * session ticket keys. Then QUIT ends this master, or the new one ends and this one continues alone.
 */
#ifndef MASTER_UPGRADE_H
#define MASTER_UPGRADE_H

#include "master/listen_fds.h"
#include "master/shared.h"

#include <sys/types.h>

struct master;

/* Both roles: a master can be started by an upgrade, and upgraded later. */
struct upgrade {
    pid_t successor;                /* the new master that this one started; 0: none */
    int report_fd;                  /* socket: the successor writes one byte when it serves; -1: none */
    uint64_t deadline_ms;           /* when a successor that does not serve is killed; 0: it serves */
    pid_t predecessor;              /* the master that started this one; 0: none, or it is exiting */
    int ready_fd;                   /* the other end of the predecessor's report_fd, closed when it exits; -1: none */
    int state_fd;                   /* ticket keys of the predecessor; -1: none */
    uint64_t early_data_from_ms;    /* when early data is accepted again; 0: not known yet, or past */
};

/* USR2: starts the successor. Logs the reason if that fails. */
void upgrade_start(struct master *master);
/* Reads the successor's report, and detects that the predecessor is exiting. */
void upgrade_read(struct master *master);
/*
 * Called when this master begins to exit. If there is a successor: removes the pid file of this master, and makes the
 * successor the main process of the service manager.
 */
void upgrade_hand_over(struct master *master);
/* Handles the exit of a child that is no worker. Restores the name of the pid file. */
void upgrade_child_exited(struct master *master, pid_t pid, int status);
/*
 * Kills a successor that does not serve in time; accepts early data again some time after the predecessor stopped
 * accepting it.
 */
void upgrade_check(struct master *master);
/* Returns the milliseconds until the next check; -1: none is needed. */
int upgrade_next_ms(const struct master *master);
/* True while another master uses the same listening sockets: paths of unix: sockets must stay. */
bool upgrade_shares_sockets(const struct master *master);
/* Closes the descriptors, in a worker or at the end. */
void upgrade_close(struct upgrade *upgrade);

/* Environment variable by which a master passes descriptors to its successor. */
#define UPGRADE_VARIABLE "SLUICE_UPGRADE"

/*
 * In a master that an upgrade started: takes the descriptors named in the environment, and removes the variable. NULL:
 * there are no sockets.
 */
struct listen_fds *upgrade_inherit(struct upgrade *upgrade, struct log *log);
/* Copies the predecessor's ticket keys, and rejects early data; upgrade_check accepts it again. */
void upgrade_inherit_tickets(struct master *master);
/* Reports to the predecessor that this master serves. */
void upgrade_report(struct upgrade *upgrade);
/* Detects that the predecessor is exiting; then this master alone owns the sockets. */
void upgrade_read_predecessor(struct master *master);

/* Ticket keys passed to a successor with the same layout of this struct, in anonymous memory (memfd_create(2)). */
struct upgrade_state {
    uint64_t size;                  /* of this struct: another version of it is ignored */
    uint64_t tickets_generated_ms;  /* on the monotonic clock */
    struct ticket_keys tickets;
};

#endif
