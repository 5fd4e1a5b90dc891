/*
 * The service manager that started the server, such as systemd: messages of sd_notify(3), and its watchdog.
 */
#ifndef MASTER_SERVICE_H
#define MASTER_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

/* Sends one message like "READY=1" to $NOTIFY_SOCKET, if it is set. Errors are ignored. */
void service_notify(const char *state);

/* Keep-alive messages (sd_watchdog_enabled(3)): without them the service manager restarts the server. */
struct watchdog {
    uint64_t interval_ms;           /* between two messages; 0: no messages */
    uint64_t sent_ms;               /* CLOCK_MONOTONIC; 0: none was sent */
};

/*
 * Reads $WATCHDOG_USEC and $WATCHDOG_PID. The interval is half of the service manager's timeout. Returns false if one
 * of them is malformed; then no messages are sent.
 */
bool watchdog_open(struct watchdog *out_watchdog);
/* Sends a message when it is due. */
void watchdog_check(struct watchdog *watchdog, uint64_t now_ms);
/* Returns the milliseconds until the next message; -1: none follows. */
int watchdog_next_ms(const struct watchdog *watchdog, uint64_t now_ms);
/* Removes $WATCHDOG_PID, in a child that will execute another binary as the new master under another pid. */
void watchdog_pass_on(void);

#endif
