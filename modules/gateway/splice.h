/*
 * Large bodies by splice(2) through a pipe.
 */
#ifndef MODULES_GATEWAY_SPLICE_H
#define MODULES_GATEWAY_SPLICE_H

#include "gateway.h"

/* True if the body is large and its rest has no framing and exceeds one small receive. */
bool gateway_body_is_large(const struct gateway_request *p);
/* True if the rest of the body is spliced, and therefore not read ahead. */
bool gateway_splices(const struct gateway_request *p);
/* Starts to splice more bytes into the pipe, if `accept` has CHUNK_PIPE. False: read the body instead. */
bool gateway_splice(struct gateway_request *p, unsigned accept);
/* `count` bytes are in the pipe. True: the response is complete. */
bool gateway_splice_filled(struct gateway_request *p, size_t count);
/* Sets *out to the contents of the pipe, once. False: the pipe is empty. */
bool gateway_spliced(struct gateway_request *p, struct chunk *out);

#endif
