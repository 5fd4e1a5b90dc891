/*
 * Bounds the work that a client causes without requesting anything: control frames, streams that it cancels,
 * violations that make the server reset a stream. Each event costs credit; time, completed responses and transferred
 * DATA restore it; a client without credit gets GOAWAY with ENHANCE_YOUR_CALM.
 */
#ifndef HTTP_H2_ABUSE_H
#define HTTP_H2_ABUSE_H

#include <stdbool.h>
#include <stdint.h>

enum h2_event {
    H2_EVENT_SETTINGS,
    H2_EVENT_PING,
    H2_EVENT_PRIORITY,
    H2_EVENT_WINDOW_UPDATE,         /* with a small increment, or of a closed stream */
    H2_EVENT_EMPTY_DATA,            /* DATA with neither payload (padding does not count) nor END_STREAM */
    H2_EVENT_CONTINUATION,
    H2_EVENT_CLIENT_RESET,          /* RST_STREAM before the response was complete (CVE-2023-44487) */
    H2_EVENT_SERVER_RESET,          /* the client violated the protocol on a stream (CVE-2025-8671) */
    H2_EVENT_UNKNOWN,               /* a frame of an unknown type */
    H2_EVENT_IGNORED,               /* a frame without effect: of a closed stream, an acknowledgement, GOAWAY */
    H2_EVENTS,
};

struct h2_credit {
    int32_t left;
    uint64_t seen_ms;               /* monotonic clock: credit for the time before it has been added */
};

/* Sets the full credit, LIMIT_H2_CREDIT. */
void h2_credit_init(struct h2_credit *credit, uint64_t now_ms);
/* Charges one event. False: the credit is used up. */
bool h2_credit_charge(struct h2_credit *credit, enum h2_event event, uint64_t now_ms);
/* Restores credit after a completed response, or after a DATA frame that is not small. */
void h2_credit_restore(struct h2_credit *credit, uint32_t amount);

#endif
