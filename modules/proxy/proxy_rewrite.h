/*
 * Maps Location, Refresh and Set-Cookie of the upstream server to the values that the client uses.
 */
#ifndef MODULES_PROXY_PROXY_REWRITE_H
#define MODULES_PROXY_PROXY_REWRITE_H

#include "modules/gateway/gateway.h"

/* One row of proxy_redirect, proxy_cookie_domain or proxy_cookie_path: replaces `from` by `to`. */
struct proxy_rewrite {
    enum proxy_rewrite_kind { REWRITE_OFF, REWRITE_DEFAULT, REWRITE_PAIR } kind;
    const struct template *from, *to;
};

enum proxy_same_site { SAME_SITE_KEEP, SAME_SITE_NONE, SAME_SITE_LAX, SAME_SITE_STRICT, SAME_SITE_DROP };

/* One row of proxy_cookie_flags. */
struct proxy_flags {
    struct str cookie;              /* cookie name; empty: off */
    int secure, http_only;          /* 1: set, -1: removed, 0: unchanged */
    enum proxy_same_site same_site;
};

directive_row proxy_read_redirect, proxy_read_cookie_pair, proxy_read_cookie_flags;

/* proxy_redirect: maps Location and Refresh. 0 or -ENOMEM. */
MUST_CHECK int proxy_rewrite_location(struct gateway_request *p);
/* proxy_cookie_domain, _path and _flags: maps every Set-Cookie of the response. 0 or -ENOMEM. */
MUST_CHECK int proxy_rewrite_cookies(struct gateway_request *p);

#endif
