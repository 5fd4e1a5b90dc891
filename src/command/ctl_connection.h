/*
 * Requests of `sluice ctl` to the control socket of a running server.
 */
#ifndef COMMAND_CTL_CONNECTION_H
#define COMMAND_CTL_CONNECTION_H

#include "base/buffer.h"

/*
 * Sends a request over HTTP/1.0 to a Unix socket, and appends the whole response; `slow`: without a timeout. Returns 0,
 * or -1 after an error message.
 */
MUST_CHECK int ctl_exchange(const char *path, struct str request, bool slow, struct buffer *out);

#endif
