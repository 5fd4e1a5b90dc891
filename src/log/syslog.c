/*
 * Datagrams to a syslog receiver. The master opens and connects the sockets; the workers inherit them.
 */
#include "log/syslog.h"

#include "base/limits.h"
#include "log/log_record.h"

#include <errno.h>
#include <stdio.h>
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

/* The name of the month is English in every locale. */
static void print_rfc3164_time(const struct tm *local, char *out, size_t size)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    snprintf(out, size, "%.3s %2d %02d:%02d:%02d", months + 3 * (local->tm_mon % 12), local->tm_mday, local->tm_hour,
             local->tm_min, local->tm_sec);
}

static int print_rfc3164(const struct syslog *syslog, int priority, const struct clock *clock, char *out)
{
    time_t seconds = (time_t)clock_wall_s(clock);
    struct tm local = {0};
    char time[64];

    localtime_r(&seconds, &local);
    print_rfc3164_time(&local, time, sizeof(time));
    return snprintf(out, SYSLOG_HEADER_SIZE, "<%d>%s %s%s%s: ", priority, time, syslog->hostname,
                    syslog->hostname[0] ? " " : "", syslog->tag);
}

static int print_rfc5424(const struct syslog *syslog, int priority, const struct clock *clock, char *out)
{
    char time[LOG_TIME_SIZE];

    log_time_print(clock, time);
    return snprintf(out, SYSLOG_HEADER_SIZE, "<%d>1 %s %s %s %ld - - ", priority, time,
                    syslog->hostname[0] ? syslog->hostname : "-", syslog->tag, (long)getpid());
}

/* The length of the message is set by syslog_finish. */
static int print_journal(const struct syslog *syslog, int level, char *out)
{
    int length = snprintf(out, SYSLOG_HEADER_SIZE - 8,
                          "PRIORITY=%d\nSYSLOG_FACILITY=%d\nSYSLOG_IDENTIFIER=%s\nMESSAGE\n", level, syslog->facility,
                          syslog->tag);

    memset(out + length, 0, 8);
    return length + 8;
}

struct str syslog_header(const struct syslog *syslog, enum log_level level, const struct clock *clock, char *out)
{
    int priority = syslog->facility * 8 + (int)level;
    int length = 0;

    switch (syslog->form) {
    case SYSLOG_RFC3164:
        length = print_rfc3164(syslog, priority, clock, out);
        break;
    case SYSLOG_RFC5424:
        length = print_rfc5424(syslog, priority, clock, out);
        break;
    case SYSLOG_JOURNAL:
        length = print_journal(syslog, (int)level, out);
        break;
    }
    return str_of(out, length < 0 ? 0 : (size_t)length);
}

int syslog_finish(const struct syslog *syslog, struct buffer *datagram, size_t text_at)
{
    uint64_t length = datagram->length - text_at;

    if (syslog->form != SYSLOG_JOURNAL)
        return 0;
    for (size_t i = 0; i < 8; i++)
        datagram->data[text_at - 8 + i] = (char)(length >> (8 * i));
    return buffer_append(datagram, STR("\n"));
}
