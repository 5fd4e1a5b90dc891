/*
 * What the answer of a server says of itself, in the words of this one: Location and Set-Cookie.
 */
#ifndef MODULES_PROXY_PROXY_REWRITE_H
#define MODULES_PROXY_PROXY_REWRITE_H

#include "modules/gateway/gateway.h"

/* One row of proxy_redirect, proxy_cookie_domain or proxy_cookie_path: `from` becomes `to`. */
struct proxy_rewrite {
    enum proxy_rewrite_kind { REWRITE_OFF, REWRITE_DEFAULT, REWRITE_PAIR } kind;
    const struct template *from, *to;
};

enum proxy_same_site { SAME_SITE_KEEP, SAME_SITE_NONE, SAME_SITE_LAX, SAME_SITE_STRICT, SAME_SITE_DROP };

/* One row of proxy_cookie_flags. */
struct proxy_flags {
    struct str cookie;              /* its name; empty: off */
    int secure, http_only;          /* 1: set, -1: taken away, 0: as it comes */
    enum proxy_same_site same_site;
};

directive_row proxy_read_redirect, proxy_read_cookie_pair, proxy_read_cookie_flags;

/* proxy_redirect: a Location that names the server as we do names us instead. 0 or -ENOMEM. */
MUST_CHECK int proxy_rewrite_location(struct gateway_request *p);
/* proxy_cookie_domain, _path and _flags: every Set-Cookie of the answer. 0 or -ENOMEM. */
MUST_CHECK int proxy_rewrite_cookies(struct gateway_request *p);

#endif
