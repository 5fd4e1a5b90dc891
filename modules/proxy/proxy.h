/*
 * `proxy_pass`: requests to HTTP upstreams. Shared by the files of the proxy module.
 */
#ifndef MODULES_PROXY_PROXY_H
#define MODULES_PROXY_PROXY_H

#include "modules/gateway/gateway.h"
#include "proxy_rewrite.h"

/* proxy_set_header: an empty value removes the field. */
struct proxy_field {
    struct str name;
    const struct template *value;
};

struct proxy_fields {
    struct proxy_field *items;
    size_t count;
};

struct proxy_conf {
    struct gateway_conf gateway;
    struct conf_rows set_headers;   /* struct proxy_fields, outer scopes first */
    struct conf_rows redirects;     /* struct proxy_rewrite; none: default */
    /* struct proxy_rewrite. */
    struct conf_rows cookie_domains, cookie_paths;
    struct conf_rows cookie_flags;  /* struct proxy_flags */
    int http_version;               /* of proxy_http_version: 0: 1.1; 1: 2 */
    bool drop_fields;               /* proxy_pass_request_headers is off: the client's fields are not sent */
    bool pass_body, pass_fields;    /* directive values, stored inverted in gateway.drop_body and drop_fields */
};

extern const struct module module_proxy;
extern const struct directive proxy_directives[];
extern const struct gateway proxy_gateway, proxy_http2_gateway;
extern const struct variable_table proxy_variables;

static inline const struct proxy_conf *proxy_conf_of(const struct gateway_request *p)
{
    return container_of(p->conf, struct proxy_conf, gateway);
}

/* proxy_conf.c */

directive_row proxy_read_pass, proxy_read_fields;
/* As proxy_read_pass, for addresses that `parse` reads; `hint` is part of the error message. */
MUST_CHECK int proxy_read_pass_as(struct conf_reader *reader, const struct conf_node *node,
                                  int (*parse)(struct str text, struct gateway_target *out_target), struct str hint,
                                  void *out);
/* Completes conf->gateway.ssl, of the directives with the prefix. 0, or -EINVAL (reported). */
MUST_CHECK int proxy_complete_tls(struct proxy_conf *conf, const char *prefix, struct conf_reader *reader,
                                  const struct conf_node *at);
int proxy_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);

/* proxy_target.c */

/* Parses "http://backend/uri"; the results are slices of `text`. 0 or -EINVAL. */
MUST_CHECK int proxy_target_parse(struct str text, struct gateway_target *out_target);
/* Default port: 80 or 443. */
uint16_t proxy_target_port(const struct gateway_target *target);

/* proxy_headers.c */

/* Writes the header of the request to p->sent.head, or p->sent.h2. 0, -ENOMEM, or -EINVAL with *out_fault. */
MUST_CHECK int proxy_write_head(struct gateway_request *p, struct str *out_fault);

/* proxy_websocket.c */

/*
 * A WebSocket by extended CONNECT has no handshake of RFC 6455: adds Sec-WebSocket-Key to the request, and removes
 * Sec-WebSocket-Accept from the response. 0 or -ENOMEM.
 */
MUST_CHECK int proxy_websocket_begin(struct gateway_request *p, struct headers *fields);
/* Checks the 101 (RFC 6455 4.1), if proxy_websocket_begin was called. NULL, or the fault. */
const char *proxy_websocket_check(struct gateway_request *p);

/* proxy_expect.c */

struct proxy_expect;
/*
 * Returns true if `Expect: 100-continue` is sent to the upstream server: the client waits for a 100, and its body is
 * not buffered.
 */
static inline bool proxy_forwards_expect(const struct gateway_request *p)
{
    return p->x->request.expects_continue && !p->conf->gateway->streams && p->sent.content_length > 0 &&
           !p->sent.replacement_body.data && !p->sent.buffered;
}
/* Delays p->sent.request's body until proxy_expect_met, or for LIMIT_CONTINUE_MS. 0 or -ENOMEM. */
MUST_CHECK int proxy_expect_begin(struct gateway_request *p);
/*
 * The upstream server sent 100: the loop pulls the body from now on, which sends 100 to the client. No effect once the
 * response has begun.
 */
void proxy_expect_met(struct gateway_request *p);
/* Stops the timer; a delayed body stays delayed. */
void proxy_expect_end(struct gateway_request *p);

#endif
