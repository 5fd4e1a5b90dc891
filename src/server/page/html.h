/*
 * Text in HTML.
 */
#ifndef SERVER_PAGE_HTML_H
#define SERVER_PAGE_HTML_H

#include "base/buffer.h"

/*
 * Appends text, escaped for element content and quoted attribute values. Invalid UTF-8 (RFC 3629) and control
 * characters become U+FFFD. 0, -ENOMEM or -ENOBUFS.
 */
MUST_CHECK int html_append(struct buffer *out, struct str text);

#endif
