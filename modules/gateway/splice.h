/*
 * Large bodies pass through a pipe, by splice(2).
 */
#ifndef MODULES_GATEWAY_SPLICE_H
#define MODULES_GATEWAY_SPLICE_H

#include "gateway.h"

/* True where the rest of the body is to pass through a pipe: it is not read ahead. */
bool gateway_splices(const struct gateway_request *p);
/* Asks for more of it in the pipe, for a client that takes `accept`. False: it is to be read. */
bool gateway_splice(struct gateway_request *p, unsigned accept);
/* So many bytes are in the pipe. True: the response is whole. */
bool gateway_splice_filled(struct gateway_request *p, size_t count);
/* What is in the pipe is lent, once. False: nothing. */
bool gateway_spliced(struct gateway_request *p, struct chunk *out);

#endif
