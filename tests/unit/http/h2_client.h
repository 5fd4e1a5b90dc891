/*
 * An HTTP/2 client in memory for a table_server: it encodes frames, and logs each frame of the server as a line. It
 * aborts when the server violates the protocol: frames, header blocks, states of streams, flow control.
 */
#ifndef TEST_HTTP_H2_CLIENT_H
#define TEST_HTTP_H2_CLIENT_H

#include "http/h2/frame.h"
#include "table_server.h"

#define H2_CLIENT_STREAMS 4096 /* streams whose state is checked: identifiers below twice this number */

struct nghttp2_hd_deflater;
struct nghttp2_hd_inflater;

struct h2_client_stream {
    int64_t increments; /* sum of WINDOW_UPDATE */
    int64_t received;   /* bytes of DATA */
    bool headed;        /* a final response head was received */
    bool ended;         /* END_STREAM or RST_STREAM was received */
};

struct h2_client {
    struct table_server server;
    struct nghttp2_hd_deflater *deflater;
    struct nghttp2_hd_inflater *inflater;
    struct buffer sent;             /* frames for the next flush */
    struct buffer scanned;          /* sent bytes of an incomplete frame */
    struct buffer input;            /* received bytes of an incomplete frame */
    struct buffer block;            /* fragments of an incomplete header block */
    struct buffer log;
    size_t piece;                   /* bytes fed at once; 0: all */
    size_t preface_left;            /* bytes of the preface that are not yet scanned */
    int64_t initial_max;            /* largest initial window announced */
    int64_t increments;             /* of the connection */
    int64_t received;               /* bytes of DATA */
    uint32_t frame_max;             /* largest SETTINGS_MAX_FRAME_SIZE announced */
    uint32_t open_block;            /* stream of the incomplete header block; 0: none */
    uint32_t goaway;                /* error code of the last GOAWAY */
    bool block_ends;
    bool quiet;                     /* does not log */
    struct h2_client_stream streams[H2_CLIENT_STREAMS];
};

/* Opens the server and queues the preface with an empty SETTINGS. The struct is too large for the stack. */
void h2_client_open(struct h2_client *client, const struct table_row *rows);
/* Closes server and client; aborts if an exchange has not finished. */
void h2_client_close(struct h2_client *client);

/* Each function below queues one frame. */
void h2_client_frame(struct h2_client *client, unsigned type, uint8_t flags, uint32_t stream, struct str payload);
/* `type` is H2_WINDOW_UPDATE or H2_RST_STREAM. */
void h2_client_number(struct h2_client *client, enum h2_frame_type type, uint32_t stream, uint32_t number);
void h2_client_setting(struct h2_client *client, enum h2_setting setting, uint32_t value);
/* HEADERS with END_HEADERS and further flags; `lines` are "name=value\n". */
void h2_client_headers(struct h2_client *client, uint32_t stream, uint8_t flags, const char *lines);
/* A request for a path, as HEADERS. */
void h2_client_request(struct h2_client *client, uint32_t stream, const char *method, const char *path, bool end);
/* DATA frames of at most 16384 bytes. */
void h2_client_data(struct h2_client *client, uint32_t stream, struct str bytes, bool end);
/* Returns the header block of the fields, valid until the next call. */
struct str h2_client_encode(struct h2_client *client, const char *lines);

/* Feeds the queued frames and reads the output. */
void h2_client_flush(struct h2_client *client);
/* Feeds bytes unchanged. */
void h2_client_feed(struct h2_client *client, struct str bytes);
/* Reads the output of the server. */
void h2_client_read(struct h2_client *client);
/* Flushes, returns the log so far, and empties it. The result is valid until the next call. */
const char *h2_client_log(struct h2_client *client);
/* Aborts unless the output so far ends with a complete frame and header block. */
void h2_client_check_end(const struct h2_client *client);

#endif
