/*
 * Lines of the error log in structured forms: JSON, and the fields of systemd's journal.
 */
#ifndef LOG_LOG_RECORD_H
#define LOG_LOG_RECORD_H

#include "base/buffer.h"
#include "base/log.h"

#define LOG_TIME_SIZE 96 /* with the terminator */
/* Formats the wall clock by RFC 3339, with milliseconds and the offset of local time. */
void log_time_print(const struct clock *clock, char out[LOG_TIME_SIZE]);

/*
 * Appends one JSON object (RFC 8259), without a newline: time, level, pid, connection, message, and the fields that the
 * record has, each truncated to LIMIT_LOG_FIELD. Invalid UTF-8 becomes U+FFFD. 0, -ENOMEM or -ENOBUFS.
 */
MUST_CHECK int log_record_json(const struct log_record *record, struct buffer *out);
/*
 * Appends the connection and the fields of the record as fields of the journal, SLUICE_CLIENT and so on. Results as
 * above.
 */
MUST_CHECK int log_record_journal(const struct log_record *record, struct buffer *out);

#endif
