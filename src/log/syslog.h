/*
 * A syslog receiver, or systemd's journal: one datagram per line, by UDP or a Unix socket, in nginx's form of RFC 3164,
 * in that of RFC 5424, or in the native protocol of the journal. Sending never blocks.
 */
#ifndef LOG_SYSLOG_H
#define LOG_SYSLOG_H

#include "base/buffer.h"
#include "base/log.h"
#include "io/listener.h"

#define SYSLOG_TAG_SIZE    33       /* nginx's limit, with the terminator */
#define SYSLOG_HEADER_SIZE 256

#define JOURNAL_SOCKET "unix:/run/systemd/journal/socket"

enum syslog_form { SYSLOG_RFC3164, SYSLOG_RFC5424, SYSLOG_JOURNAL };

/* Immutable, and copied by value. */
struct syslog {
    struct listen_address address;  /* of the receiver */
    int facility;
    enum log_level severity;        /* of the lines of an access log; those of the error log have their level */
    char tag[SYSLOG_TAG_SIZE];
    char hostname[65];              /* in lower case; empty: nohostname */
    enum syslog_form form;
};

/* The defaults of nginx, with the tag "sluice" and the name of this machine; no address. */
void syslog_init(struct syslog *syslog);
/* Parses "127.0.0.1", "127.0.0.1:514", "[::1]:514" or "unix:/path". 0 or -EINVAL. */
MUST_CHECK int syslog_address_parse(struct str text, struct listen_address *out_address);
/* Parses "local7" and the other names of nginx. 0 or -EINVAL. */
MUST_CHECK int syslog_facility_parse(struct str name, int *out_facility);
/* Sets a tag of 1 to 32 letters, digits and underscores. 0 or -EINVAL. */
MUST_CHECK int syslog_set_tag(struct syslog *syslog, struct str tag);

/* Opens a socket, not yet connected. A close-on-exec descriptor that the caller owns, or -errno. */
MUST_CHECK int syslog_open(const struct syslog *syslog);
/*
 * Connects or reconnects the socket, for all processes that share it: a Unix socket stays connected to a receiver that
 * has ended. 0 or -errno; the earlier connection then stays.
 */
MUST_CHECK int syslog_connect(int fd, const struct syslog *syslog);
/*
 * Sends one datagram. 0, or the -errno of one lost line: this one, or an earlier one whose loss the receiver's machine
 * reported only now (ICMP).
 */
MUST_CHECK int syslog_send(int fd, struct str datagram);
/* Writes the part before the text into `out`, SYSLOG_HEADER_SIZE bytes, and returns it. */
struct str syslog_header(const struct syslog *syslog, enum log_level level, const struct clock *clock, char *out);
/*
 * Completes a datagram after its text, which began at `text_at`: the journal's has the length of the text before it,
 * and a newline after it. 0, -ENOMEM or -ENOBUFS.
 */
MUST_CHECK int syslog_finish(const struct syslog *syslog, struct buffer *datagram, size_t text_at);

#endif
