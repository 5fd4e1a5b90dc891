/*
 * The signals of the master, read from a signalfd.
 */
#include "master/master_state.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int handled_signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD};

int master_signals_open(struct master *master)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(handled_signals) / sizeof(handled_signals[0]); i++)
        sigaddset(&set, handled_signals[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return -errno;
    master->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return master->signal_fd < 0 ? -errno : 0;
}

static void end_all(struct master *master, enum channel_kind how)
{
    master->ending = true;
    if (!upgrade_shares_sockets(master))
        service_notify("STOPPING=1");
    upgrade_hand_over(master);
    master_acme_stop(master);
    /* Another master continues: clients of idle connections may send one more request. */
    if (how == CHANNEL_QUIT && upgrade_shares_sockets(master))
        how = CHANNEL_RETIRE;
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        generation_shutdown(master, generation, how);
        /* The master's copies of the sockets, too: while they are open, the kernel queues further connections. */
        if (how != CHANNEL_STOP)
            sockets_close(&generation->sockets, !upgrade_shares_sockets(master));
    }
}

/* WINCH: the workers exit when open responses are sent. The sockets stay open for a later HUP. */
static void drain_workers(struct master *master, struct log *log)
{
    if (master->ending || master->next_generation || !master->current) {
        log_write(log, LOG_WARN, "signal WINCH: ignored, because the server is starting, reloading or ending");
        return;
    }
    log_write(log, LOG_NOTICE, "signal WINCH: workers exit when open responses are sent; HUP starts new ones");
    master->passed = listen_fds_duplicate(&master->current->sockets, log);
    master->drained = true;
    generation_shutdown(master, master->current, CHANNEL_RETIRE);
    sockets_close(&master->current->sockets, false);
    master_acme_stop(master);
    master->current = NULL;
}

/* After a failed upgrade the workers that WINCH ended start again. */
static void reap_children(struct master *master)
{
    bool had_successor = master->upgrade.successor > 0;

    children_reap(master);
    if (had_successor && master->upgrade.successor == 0 && master->drained)
        master_reload(master);
}

static void dispatch_signal(struct master *master, int number)
{
    struct log *log = &master->error_log.log;

    switch (number) {
    case SIGTERM:
    case SIGINT:
        log_write(log, LOG_NOTICE, "signal %s: terminating now", number == SIGINT ? "INT" : "TERM");
        end_all(master, CHANNEL_STOP);
        break;
    case SIGQUIT:
        log_write(log, LOG_NOTICE, "signal QUIT: exiting when open responses are sent");
        end_all(master, CHANNEL_QUIT);
        break;
    case SIGHUP:
        master_reload(master);
        break;
    case SIGUSR1:
        master_reopen_logs(master);
        break;
    case SIGCHLD:
        reap_children(master);
        break;
    case SIGUSR2:
        upgrade_start(master);
        break;
    case SIGWINCH:
        drain_workers(master, log);
        break;
    }
}

void master_signals_read(struct master *master)
{
    struct signalfd_siginfo arrived;

    while (read(master->signal_fd, &arrived, sizeof(arrived)) == sizeof(arrived))
        dispatch_signal(master, (int)arrived.ssi_signo);
}
