/*
 * The values "syslog:server=...,facility=..." and "journald:tag=..." of access_log and error_log.
 */
#include "log/syslog.h"
#include "site/core.h"

#include <errno.h>

#define FACILITY_DAEMON 3 /* RFC 5424 6.2.1 */
#define EXAMPLE "syslog:server=127.0.0.1:514,facility=local7,tag=sluice,severity=info"

static int set_server(struct syslog *syslog, struct str value)
{
    int error = syslog_address_parse(value, &syslog->address);

    if (error == 0 && syslog->form == SYSLOG_JOURNAL && syslog->address.socket.ss_family != AF_UNIX)
        return -EINVAL;
    return error;
}

static int set_facility(struct syslog *syslog, struct str value)
{
    return syslog_facility_parse(value, &syslog->facility);
}

static int set_severity(struct syslog *syslog, struct str value)
{
    return log_level_parse(value, &syslog->severity);
}

static int set_nohostname(struct syslog *syslog, struct str value)
{
    syslog->hostname[0] = '\0';
    return value.data || syslog->form == SYSLOG_JOURNAL ? -EINVAL : 0;
}

static int set_format(struct syslog *syslog, struct str value)
{
    if (syslog->form == SYSLOG_JOURNAL)
        return -EINVAL;
    syslog->form = str_equal(value, STR("rfc5424")) ? SYSLOG_RFC5424 : SYSLOG_RFC3164;
    return syslog->form == SYSLOG_RFC5424 || str_equal(value, STR("rfc3164")) ? 0 : -EINVAL;
}

static const struct {
    const char *name;
    int (*set)(struct syslog *syslog, struct str value); /* data NULL: there is no "=" */
    const char *hint;
} parameters[] = {
    {"server", set_server, "server=127.0.0.1, server=[::1]:514 or server=unix:/dev/log: names are not resolved; "
               "journald has a Unix socket"},
    {"facility", set_facility, "kern, user, mail, daemon, auth, intern, lpr, news, uucp, clock, authpriv, ftp, ntp, "
                               "audit, alert, cron, or local0 to local7"},
    {"severity", set_severity, "debug, info, notice, warn, error, crit, alert or emerg"},
    {"tag", syslog_set_tag, "1 to 32 letters, digits and underscores"},
    {"nohostname", set_nohostname, "nohostname has no value; it is not for journald"},
    {"format", set_format, "format=rfc3164 (as nginx) or format=rfc5424; not for journald"},
};

static int read_parameter(struct conf_reader *reader, const struct conf_node *node, struct str word,
                          struct syslog *syslog)
{
    const char *hint = "syslog has server, facility, severity, tag, nohostname and format";
    struct str value = word;
    struct str name = str_cut(&value, '=');

    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
        if (!str_equal(name, str_from(parameters[i].name)))
            continue;
        if (parameters[i].set(syslog, value) == 0)
            return 0;
        hint = parameters[i].hint;
    }
    conf_error(reader->errors, conf_mark_within(node, word, 0), str_from(hint),
               "\"" STR_FMT "\" is not a parameter of syslog", STR_ARG(word));
    return -EINVAL;
}

bool core_is_syslog(struct str text)
{
    return str_starts(text, STR("syslog:")) || str_equal(text, STR("journald")) || str_starts(text, STR("journald:"));
}

static int init_syslog(struct syslog *syslog, bool journal)
{
    syslog_init(syslog);
    if (!journal)
        return 0;
    syslog->form = SYSLOG_JOURNAL;
    syslog->facility = FACILITY_DAEMON;
    return syslog_address_parse(STR(JOURNAL_SOCKET), &syslog->address);
}

int core_syslog_read(struct conf_reader *reader, const struct conf_node *node, struct str text,
                     const struct syslog **out_syslog)
{
    struct syslog *syslog = arena_zalloc(reader->arena, 1, sizeof(*syslog));
    struct str rest = text;
    bool journal = str_equal(str_cut(&rest, ':'), STR("journald"));

    if (!syslog || init_syslog(syslog, journal) < 0)
        return -ENOMEM;
    while (rest.data) {
        int error = read_parameter(reader, node, str_cut(&rest, ','), syslog);

        if (error < 0)
            return error;
    }
    if (syslog->address.length == 0) {
        conf_error(reader->errors, node->mark, STR(EXAMPLE), "syslog needs a server");
        return -EINVAL;
    }
    *out_syslog = syslog;
    return 0;
}
