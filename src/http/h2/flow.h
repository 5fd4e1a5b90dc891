/*
 * Flow control (RFC 9113 5.2 and 6.9): windows for sending and for receiving, and the size of the receive windows,
 * which follows the measured bandwidth-delay product.
 */
#ifndef HTTP_H2_FLOW_H
#define HTTP_H2_FLOW_H

#include "http/h2/frame.h"

/*
 * Adds an increment of WINDOW_UPDATE, or a change of the initial window (which may be negative), to a window for
 * sending. False if the result exceeds 2^31-1; the window may become negative (RFC 9113 6.9.2).
 */
MUST_CHECK bool h2_window_add(int32_t *window, int64_t change);

/* A window for receiving. size = left + released + bytes received and not yet consumed. */
struct h2_receive_window {
    uint32_t size;                  /* bytes that the peer may send ahead */
    uint32_t left;                  /* bytes that the peer may still send */
    uint32_t released;              /* bytes consumed here and not yet announced by WINDOW_UPDATE */
};

/* Initialises a window of which nothing is used. */
void h2_receive_window_init(struct h2_receive_window *window, uint32_t size);
/* Counts received bytes. False if the peer exceeded the window. */
MUST_CHECK bool h2_receive_window_take(struct h2_receive_window *window, uint32_t bytes);
/*
 * Counts consumed bytes. Returns the increment to announce, or 0: it is due once it reaches half of the window, so
 * that few frames are sent.
 */
uint32_t h2_receive_window_release(struct h2_receive_window *window, uint32_t bytes);
/* Raises the size; the difference is announced with the next release. Never lowers it. */
void h2_receive_window_resize(struct h2_receive_window *window, uint32_t size);

/*
 * Estimates the bandwidth-delay product: bytes received between a PING and its acknowledgement. One PING is in flight
 * at a time, and only while data arrives.
 */
struct h2_bdp {
    uint32_t bytes;                 /* received since the PING */
    bool measuring;
};
/* Counts received bytes. True if a PING is due. */
bool h2_bdp_received(struct h2_bdp *bdp, uint32_t bytes);
/* The PING was acknowledged: the new size of the receive window, at least `size` and at most `max`. */
uint32_t h2_bdp_window(struct h2_bdp *bdp, uint32_t size, uint32_t max);

#endif
