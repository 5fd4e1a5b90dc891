/*
 * HTTP/2 frames (RFC 9113 4 and 6): heads, the rules for length and stream of each type, and the formats of control
 * frames. The functions only read and write memory.
 */
#ifndef HTTP_H2_FRAME_H
#define HTTP_H2_FRAME_H

#include "base/limits.h"
#include "base/str.h"

#include <stdbool.h>

#define H2_FRAME_HEAD       9
#define H2_FRAME_SIZE       LIMIT_H2_FRAME /* SETTINGS_MAX_FRAME_SIZE: initial value, and the value of this server */
/* The payload of a DATA frame that fills one TLS record. */
#define H2_FRAME_PAYLOAD    (H2_FRAME_SIZE - H2_FRAME_HEAD)
#define H2_WINDOW_MAX       INT32_MAX
#define H2_WINDOW_INITIAL   65535
#define H2_STREAM_MAX       INT32_MAX

enum h2_frame_type {
    H2_DATA,
    H2_HEADERS,
    H2_PRIORITY,
    H2_RST_STREAM,
    H2_SETTINGS,
    H2_PUSH_PROMISE,
    H2_PING,
    H2_GOAWAY,
    H2_WINDOW_UPDATE,
    H2_CONTINUATION,
    H2_PRIORITY_UPDATE = 16,        /* RFC 9218 7.1 */
};

enum {
    H2_FLAG_END_STREAM = 1,
    H2_FLAG_ACK = 1,
    H2_FLAG_END_HEADERS = 4,
    H2_FLAG_PADDED = 8,
    H2_FLAG_PRIORITY = 32,
};

/* Error codes (RFC 9113 7). */
enum h2_error {
    H2_NO_ERROR,
    H2_PROTOCOL_ERROR,
    H2_INTERNAL_ERROR,
    H2_FLOW_CONTROL_ERROR,
    H2_SETTINGS_TIMEOUT,
    H2_STREAM_CLOSED,
    H2_FRAME_SIZE_ERROR,
    H2_REFUSED_STREAM,
    H2_CANCEL,
    H2_COMPRESSION_ERROR,
    H2_CONNECT_ERROR,
    H2_ENHANCE_YOUR_CALM,
    H2_INADEQUATE_SECURITY,
    H2_HTTP_1_1_REQUIRED,
    H2_ERRORS,
};
/* "NO_ERROR" and so on; "unknown" for other codes. */
const char *h2_error_name(uint32_t code);

struct h2_frame {
    uint32_t length;                /* of the payload, 24 bits */
    uint8_t type;                   /* enum h2_frame_type, or unknown */
    uint8_t flags;
    uint32_t stream;                /* 31 bits */
    struct str payload;
};

/* Parses a head of H2_FRAME_HEAD bytes; the payload is not set. */
struct h2_frame h2_frame_parse_head(const char *head);
/*
 * Checks length and stream identifier by the rules of the frame's type. H2_NO_ERROR, or the code of a connection
 * error; unknown types are always valid.
 */
enum h2_error h2_frame_check(const struct h2_frame *frame);
/*
 * Removes padding, and the priority fields of HEADERS, from the payload. *out_depends: the stream named by the
 * priority fields, 0 without them. H2_NO_ERROR, or the code of a connection error.
 */
enum h2_error h2_frame_unpad(struct h2_frame *frame, uint32_t *out_depends);

/* Reads a 32-bit number in network byte order. */
uint32_t h2_read_u32(const char *at);

/* Each function below formats at `at`, which has room for the whole frame, and returns the end. */
char *h2_frame_write_head(char *at, size_t length, enum h2_frame_type type, uint8_t flags, uint32_t stream);
/* RST_STREAM and WINDOW_UPDATE: four bytes of payload. */
char *h2_frame_write_number(char *at, enum h2_frame_type type, uint32_t stream, uint32_t number);
char *h2_frame_write_ping(char *at, uint8_t flags, const char *opaque);
char *h2_frame_write_goaway(char *at, uint32_t last_stream, enum h2_error code);
#define H2_NUMBER_FRAME     (H2_FRAME_HEAD + 4)
#define H2_PING_FRAME       (H2_FRAME_HEAD + 8)
#define H2_GOAWAY_FRAME     (H2_FRAME_HEAD + 8)

/* Identifiers of SETTINGS parameters (RFC 9113 6.5.2, RFC 8441 3, RFC 9218 2.1). */
enum h2_setting {
    H2_SETTINGS_HEADER_TABLE_SIZE = 1,
    H2_SETTINGS_ENABLE_PUSH = 2,
    H2_SETTINGS_MAX_CONCURRENT_STREAMS = 3,
    H2_SETTINGS_INITIAL_WINDOW_SIZE = 4,
    H2_SETTINGS_MAX_FRAME_SIZE = 5,
    H2_SETTINGS_MAX_HEADER_LIST_SIZE = 6,
    H2_SETTINGS_ENABLE_CONNECT_PROTOCOL = 8,
    H2_SETTINGS_NO_RFC7540_PRIORITIES = 9,
};
#define H2_SETTING_SIZE 6
/* One parameter. */
char *h2_setting_write(char *at, enum h2_setting setting, uint32_t value);

/* The peer's parameters that matter to a sender. */
struct h2_peer_settings {
    uint32_t initial_window;
    uint32_t max_frame_size;
    uint32_t max_streams;           /* MAX_CONCURRENT_STREAMS: unlimited until it arrives */
    bool push;                      /* ENABLE_PUSH was sent with 1 */
};
/* Applies the payload of SETTINGS. H2_NO_ERROR, or the code of a connection error; unknown parameters are ignored. */
enum h2_error h2_settings_apply(struct h2_peer_settings *settings, struct str payload);

#endif
