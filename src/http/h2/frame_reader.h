/*
 * Assembles whole frames from received bytes. A frame that arrives whole is not copied.
 */
#ifndef HTTP_H2_FRAME_READER_H
#define HTTP_H2_FRAME_READER_H

#include "base/buffer.h"
#include "http/h2/frame.h"

/* Zeroed at first. */
struct h2_frame_reader {
    struct buffer input;            /* an incomplete frame, or the frame returned last */
    bool returned;                  /* `input` is the frame returned last */
};

/*
 * Takes bytes from the front of *in. 1: *out_frame passed h2_frame_check, its payload is valid until the next call;
 * 0: all bytes were taken, and the frame is incomplete; -ENOMEM; -EPROTO: *out_error is the code of a connection
 * error.
 */
MUST_CHECK int h2_frame_read(struct h2_frame_reader *reader, struct str *in, struct h2_frame *out_frame,
                             enum h2_error *out_error);
/* Frees an incomplete frame. */
void h2_frame_reader_finish(struct h2_frame_reader *reader);

#endif
