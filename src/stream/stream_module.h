/*
 * The functions that a module may call for a connection of `stream` (struct stream_part, site/module_interface.h).
 */
#ifndef STREAM_STREAM_MODULE_H
#define STREAM_STREAM_MODULE_H

#include "server/module.h"

/* Returns the client's address: the peer's, or that set by stream_set_client. */
const struct sockaddr *stream_client(const struct stream *stream);
/* Returns the peer's address, not that of stream_set_client. */
const struct sockaddr *stream_peer(const struct stream *stream);
/* Returns the PROXY protocol header; NULL: none. */
const struct proxy_header *stream_proxy_header(const struct stream *stream);
/* Sets the client's address, taken from the peer. */
void stream_set_client(struct stream *stream, const union proxy_address *client);
/* Returns the module's own memory for this connection, zeroed on the first call. NULL: out of memory. */
void *stream_state(struct stream *stream, const struct module *module, size_t size);
/* Returns the memory of an earlier stream_state call, else NULL. */
void *stream_state_found(const struct stream *stream, const struct module *module);
/* Returns the worker of the connection. */
struct worker *stream_worker(const struct stream *stream);
/* Returns the value of a template for this connection. data NULL: out of memory. */
struct str stream_eval(struct stream *stream, const struct template *template);
/* Writes one line to the error log, followed by the client. */
void stream_report(struct stream *stream, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
