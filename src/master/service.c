/*
 * Messages to the service manager, by sd_notify(3), without libsystemd.
 */
#include "master/service.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void service_notify(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path ? strlen(path) : 0;
    int fd;

    if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
        errno = 0;
    close(fd);
}

/* Parses a decimal number without sign; false: it is not one, or it is 0. */
static bool parse_positive(const char *text, uint64_t *out)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *out > 0;
}

bool watchdog_open(struct watchdog *out_watchdog)
{
    const char *timeout = getenv("WATCHDOG_USEC"), *owner = getenv("WATCHDOG_PID");
    uint64_t timeout_us, pid;

    *out_watchdog = (struct watchdog){0};
    if (!timeout)
        return true;
    if (!parse_positive(timeout, &timeout_us) || (owner && !parse_positive(owner, &pid)))
        return false;
    if (owner && pid != (uint64_t)getpid())
        return true;
    out_watchdog->interval_ms = timeout_us / 2000;
    if (out_watchdog->interval_ms < LIMIT_WATCHDOG_INTERVAL_MS_MIN)
        out_watchdog->interval_ms = LIMIT_WATCHDOG_INTERVAL_MS_MIN;
    if (out_watchdog->interval_ms > LIMIT_WATCHDOG_INTERVAL_MS_MAX)
        out_watchdog->interval_ms = LIMIT_WATCHDOG_INTERVAL_MS_MAX;
    return true;
}

int watchdog_next_ms(const struct watchdog *watchdog, uint64_t now_ms)
{
    uint64_t age_ms = u64_sub_sat(now_ms, watchdog->sent_ms);

    if (watchdog->interval_ms == 0)
        return -1;
    return age_ms >= watchdog->interval_ms ? 0 : (int)(watchdog->interval_ms - age_ms);
}

void watchdog_check(struct watchdog *watchdog, uint64_t now_ms)
{
    if (watchdog_next_ms(watchdog, now_ms) != 0)
        return;
    watchdog->sent_ms = now_ms;
    service_notify("WATCHDOG=1");
}

void watchdog_pass_on(void)
{
    unsetenv("WATCHDOG_PID");
}
