/*
 * Large bodies by splice(2) through a pipe.
 */
#ifndef MODULES_GATEWAY_SPLICE_H
#define MODULES_GATEWAY_SPLICE_H

#include "gateway.h"

/* True if the rest of the body is to be spliced: it is not read ahead. */
bool gateway_splices(const struct gateway_request *p);
/* Requests more of it in the pipe, for a client that accepts `accept`. False: read it. */
bool gateway_splice(struct gateway_request *p, unsigned accept);
/* `count` bytes are in the pipe. True: the response is complete. */
bool gateway_splice_filled(struct gateway_request *p, size_t count);
/* Lends the contents of the pipe, once. False: it is empty. */
bool gateway_spliced(struct gateway_request *p, struct chunk *out);

#endif
