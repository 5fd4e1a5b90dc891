/*
 * Shared by the files of the HTTP/2 session: the connection's state, and its streams, each in the arena of its
 * exchange. Private: other code uses protocol.h.
 */
#ifndef HTTP_H2_SESSION_H
#define HTTP_H2_SESSION_H

#include "base/buffer.h"
#include "http/h2/abuse.h"
#include "http/h2/flow.h"
#include "http/h2/header_block.h"
#include "http/h2/priority.h"
#include "http/h2/request.h"
#include "http/h2/wait.h"
#include "http/protocol_counters.h"

#define H2_BUCKETS      16          /* of the table of streams */
#define H2_RECENT       16          /* streams reset by the server whose late frames are ignored */

struct h2_stream;

enum h2_shutdown {
    H2_RUNNING,
    H2_ANNOUNCED,                   /* GOAWAY with the highest identifier was sent: new streams are still accepted */
    H2_LAST_STREAM,                 /* GOAWAY with the last accepted stream was sent */
    H2_OVER,                        /* only the current frame and queued control frames are still sent */
};

struct h2_session {
    struct session session;
    const struct session_settings *settings;
    const struct exchange_events *events;
    void *owner;
    struct arena_pool *pool;
    struct memory_budget budget;        /* arenas and buffered request bodies of the streams */
    const struct clock *clock;
    struct protocol_counters *counters; /* of the worker */
    struct buffer input;                /* an incomplete frame */
    struct buffer control;              /* queued control frames; sent between two frames of streams */
    size_t control_at;                  /* bytes of `control` already returned by produce */
    /* The stream whose frame is incomplete (no other frame may be sent), or whose chunk, returned last, is in use. */
    struct h2_stream *sending;
    struct h2_stream *receiving;        /* the open stream of `block`; NULL: the block is decoded and dropped */
    struct h2_stream *streams[H2_BUCKETS];
    struct h2_schedule schedule;        /* streams that can send */
    struct list blocked;                /* streams whose DATA waits for their window or the connection's */
    struct h2_header_block block;
    struct h2_request_reader reader;    /* of `block` */
    struct h2_peer_settings peer;
    struct h2_credit credit;
    struct h2_receive_window receive;
    struct h2_bdp bdp;
    int32_t window;                     /* for sending DATA */
    uint32_t last_stream;               /* highest identifier that the client has used */
    uint32_t last_accepted;             /* highest identifier that became an exchange */
    uint32_t body_window;               /* size of the streams' receive windows */
    uint32_t recent[H2_RECENT];
    uint32_t data_left;                 /* payload bytes of the DATA frame being received */
    uint32_t data_padding;              /* number of these bytes that are padding */
    uint32_t data_stream;
    uint64_t deadline_ms;               /* of SESSION_DEADLINE; UINT64_MAX: none */
    uint64_t announced_ms;              /* when the first GOAWAY was queued, if H2_ANNOUNCED */
    uint64_t head_since_ms;             /* start of client_header_timeout, if head_incomplete */
    unsigned stream_count;              /* in the table, also one with cancelled_in_frame */
    unsigned awaiting;                  /* streams whose module waits for their request body, except tunnels */
    unsigned requests;
    uint8_t recent_at;
    uint8_t preface_at;                 /* bytes of the client's preface received */
    uint8_t shutdown;                   /* enum h2_shutdown */
    int16_t error;                      /* returned by produce once `control` is sent */
    bool settings_received;             /* the first frame of the client was SETTINGS */
    bool head_incomplete;               /* a frame or a header block */
    bool input_ignored;                 /* client_header_timeout has passed: further input is ignored */
    bool block_ends_stream;
    bool data_ends_stream;
    bool data_padded;                   /* the next byte of DATA is the length of its padding */
    bool wake_pending;                  /* produce returned -EAGAIN: a wake must follow */
};

enum h2_stage {
    H2_STAGE_REQUEST,               /* no response yet */
    H2_STAGE_HEAD,                  /* `pending` has the response head */
    H2_STAGE_BODY,
    H2_STAGE_END,                   /* the last frame is in `pending`, or was returned by produce */
};

struct h2_stream {
    struct exchange x;              /* first member: allocated by exchange_create */
    struct h2_session *session;
    struct h2_stream *next;         /* in the bucket */
    /* In session->schedule. */
    struct h2_schedule_entry schedule_entry;
    struct list blocked;            /* in session->blocked */
    uint32_t id;
    uint8_t stage;                  /* enum h2_stage */
    bool announced;                 /* `begun` or `rejected` was called: `finished` must follow */
    bool rejected;                  /* `rejected` was called */
    bool draining;                  /* `finished` was called; the rest of the request body is discarded */
    bool reset_due;                 /* draining: RST_STREAM with NO_ERROR follows the acknowledgement of a PING */
    bool cancelled_in_frame;        /* cancelled while it is session->sending: freed after its frame */
    bool failed;                    /* the response cannot be sent, or was aborted: RST_STREAM is due */

    struct body request_body;       /* target of x.request.body, if there is a body */
    struct h2_receive_window receive;
    struct buffer input;            /* body bytes received */
    struct buffer pulled_bytes;     /* body bytes being pulled; a pulled chunk points to them */
    size_t pulled_at;               /* offset of the next pull */
    uint64_t body_length;           /* of the body; request.content_length changes with an internal redirect */
    uint64_t received;              /* body bytes */
    uint64_t drained_from;          /* value of `received` when draining began */
    int body_error;                 /* returned by next once `input` is empty */
    bool body_whole;                /* END_STREAM was received */
    bool wake_pending;              /* next returned -EAGAIN: a wake must follow */
    /* Counted in session->awaiting: client_body_timeout applies, except to an open tunnel. */
    bool timed;
    struct h2_wait body_wait;       /* for bytes of the request body */
    struct h2_wait send_wait;       /* for a window */
    bool continue_due;              /* 100 Continue is to be sent at the first pull */

    int32_t window;                 /* for sending DATA */
    bool response_waits;            /* the response body returned -EAGAIN */
    bool bodiless;                  /* no DATA: HEAD, 204, 304, or an empty body */
    uint64_t rest;                  /* remaining bytes of the response body, or BODY_LENGTH_UNKNOWN */
    struct buffer interims;         /* frames of 1xx responses, sent before all other frames of the stream */
    size_t interims_at;             /* bytes of `interims` already returned by produce */
    struct str pending;             /* frames, or the head of a DATA frame; sent next */
    struct chunk part;              /* of the body, not returned by produce yet */
    uint32_t frame_left;            /* payload bytes of the current DATA frame, not returned by produce yet */
    char head[H2_FRAME_HEAD];
};

#endif
