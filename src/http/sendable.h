/*
 * Replaces control bytes in header fields, since they could split a message (RFC 9110 5.5).
 */
#ifndef HTTP_SENDABLE_H
#define HTTP_SENDABLE_H

#include "http/headers.h"

/*
 * Replaces control bytes in values by spaces; in Location they are percent-encoded. *out_fault describes the last such
 * field, and is unchanged if there is none. 0; -EINVAL: a name is not a token, *out_fault names it; or -ENOMEM.
 */
MUST_CHECK int headers_make_sendable(struct headers *headers, struct arena *arena, struct str *out_fault);

#endif
