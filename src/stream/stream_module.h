/*
 * The functions that a module may call for a connection of `stream` (struct stream_part, site/module_interface.h).
 */
#ifndef STREAM_STREAM_MODULE_H
#define STREAM_STREAM_MODULE_H

#include "server/module.h"

/* Where the client comes from: the peer, or the address that stream_set_client has set in its place. */
const struct sockaddr *stream_client(const struct stream *stream);
const struct sockaddr *stream_peer(const struct stream *stream);
/* The header of the PROXY protocol; NULL: none. */
const struct proxy_header *stream_proxy_header(const struct stream *stream);
void stream_set_client(struct stream *stream, const union proxy_address *client);
/* The module's own memory for this connection, zeroed at first. NULL: out of memory. */
void *stream_state(struct stream *stream, const struct module *module, size_t size);
/* The same where stream_state was called before; else NULL. */
void *stream_state_found(const struct stream *stream, const struct module *module);
struct worker *stream_worker(const struct stream *stream);
/* The value of a template for this connection. data NULL: out of memory. */
struct str stream_eval(struct stream *stream, const struct template *template);
/* One line in the error log, with the client behind it. */
void stream_report(struct stream *stream, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
