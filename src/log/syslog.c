/*
 * Datagrams to a syslog receiver. The master opens and connects the sockets; the workers inherit them.
 */
#include "log/syslog.h"

#include "base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The index is the number of RFC 5424 6.2.1; the names are those of nginx. */
static const char *const facilities[] = {
    "kern", "user", "mail",   "daemon", "auth",   "intern", "lpr",    "news",   "uucp",   "clock",  "authpriv", "ftp",
    "ntp",  "audit", "alert", "cron",   "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
};

#define FACILITY_COUNT (sizeof(facilities) / sizeof(facilities[0]))

void syslog_init(struct syslog *syslog)
{
    *syslog = (struct syslog){.facility = FACILITY_COUNT - 1, .severity = LOG_INFO, .tag = "sluice"};
    if (gethostname(syslog->hostname, sizeof(syslog->hostname) - 1) < 0)
        syslog->hostname[0] = '\0';
    for (char *at = syslog->hostname; *at; at++)
        *at = str_lower(*at);
}

int syslog_address_parse(struct str text, struct listen_address *out_address)
{
    char with_port[LIMIT_SYSLOG_ADDRESS];
    bool has_port = text.length && text.data[0] == '[' ? !str_ends(text, STR("]")) : str_find(text, ':') >= 0;
    int length;

    if (str_starts(text, STR("unix:")))
        return listen_address_parse(text, out_address);
    if (text.length > LIMIT_SYSLOG_ADDRESS - 8 || str_starts(text, STR("*")))
        return -EINVAL;
    length = snprintf(with_port, sizeof(with_port), STR_FMT "%s", STR_ARG(text), has_port ? "" : ":514");
    return listen_address_parse(str_of(with_port, (size_t)length), out_address);
}

int syslog_facility_parse(struct str name, int *out_facility)
{
    for (size_t i = 0; i < FACILITY_COUNT; i++) {
        if (str_equal(name, str_from(facilities[i]))) {
            *out_facility = (int)i;
            return 0;
        }
    }
    return -EINVAL;
}

static bool is_tag_byte(char c)
{
    return (str_lower(c) >= 'a' && str_lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

int syslog_set_tag(struct syslog *syslog, struct str tag)
{
    if (str_empty(tag) || tag.length >= sizeof(syslog->tag))
        return -EINVAL;
    for (size_t i = 0; i < tag.length; i++) {
        if (!is_tag_byte(tag.data[i]))
            return -EINVAL;
    }
    memcpy(syslog->tag, tag.data, tag.length);
    syslog->tag[tag.length] = '\0';
    return 0;
}

int syslog_open(const struct syslog *syslog)
{
    int fd = socket(syslog->address.socket.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    return fd < 0 ? -errno : fd;
}

int syslog_connect(int fd, const struct syslog *syslog)
{
    return connect(fd, (const struct sockaddr *)&syslog->address.socket, syslog->address.length) < 0 ? -errno : 0;
}

int syslog_send(int fd, struct str datagram)
{
    int error = 0;

    /* The error of an earlier datagram is returned before this one is sent. */
    for (int attempt = 0; attempt < 2; attempt++) {
        if (send(fd, datagram.data, datagram.length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return error;
        error = -errno;
        if (error != -ECONNREFUSED)
            break;
    }
    return error;
}

/* RFC 3339 with milliseconds and the offset of local time. */
static void print_rfc5424_time(const struct tm *local, const struct clock *clock, char *out, size_t size)
{
    long offset_min = local->tm_gmtoff / 60;

    snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03d%c%02ld:%02ld", local->tm_year + 1900, local->tm_mon + 1,
             local->tm_mday, local->tm_hour, local->tm_min, local->tm_sec, (int)(clock->wall_ms % 1000),
             offset_min < 0 ? '-' : '+', labs(offset_min) / 60, labs(offset_min) % 60);
}

/* The month has its English name whatever the locale is. */
static void print_rfc3164_time(const struct tm *local, char *out, size_t size)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    snprintf(out, size, "%.3s %2d %02d:%02d:%02d", months + 3 * (local->tm_mon % 12), local->tm_mday, local->tm_hour,
             local->tm_min, local->tm_sec);
}

struct str syslog_header(const struct syslog *syslog, enum log_level level, const struct clock *clock, char *out)
{
    int priority = syslog->facility * 8 + (int)level;
    time_t seconds = (time_t)clock_wall_s(clock);
    struct tm local = {0};
    char time[64];
    int length;

    localtime_r(&seconds, &local);
    if (syslog->rfc5424) {
        print_rfc5424_time(&local, clock, time, sizeof(time));
        length = snprintf(out, SYSLOG_HEADER_SIZE, "<%d>1 %s %s %s %ld - - ", priority, time,
                          syslog->hostname[0] ? syslog->hostname : "-", syslog->tag, (long)getpid());
    } else {
        print_rfc3164_time(&local, time, sizeof(time));
        length = snprintf(out, SYSLOG_HEADER_SIZE, "<%d>%s %s%s%s: ", priority, time, syslog->hostname,
                          syslog->hostname[0] ? " " : "", syslog->tag);
    }
    return str_of(out, length < 0 ? 0 : (size_t)length);
}
