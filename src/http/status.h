/*
 * Status codes and their reason phrases (RFC 9110 15).
 */
#ifndef HTTP_STATUS_H
#define HTTP_STATUS_H

#include "base/str.h"

/* The standard reason phrase of a status, or an empty str. */
struct str status_reason(int status);
/* True for statuses without content: 1xx, 204, 304 (RFC 9110 6.4.1). */
bool status_bodiless(int status);
/* True for the statuses whose Location a client follows: 301, 302, 303, 307, 308 (RFC 9110 15.4). */
bool status_redirects(int status);

#endif
