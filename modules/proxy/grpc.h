/*
 * `grpc_pass`: a proxy that always uses HTTP/2. Its configuration is a struct proxy_conf.
 */
#ifndef MODULES_PROXY_GRPC_H
#define MODULES_PROXY_GRPC_H

#include "proxy.h"

extern const struct module module_grpc;
extern const struct directive grpc_directives[];
extern const struct gateway grpc_gateway;

/* grpc_gateway.c */

/* Parses "grpc://host:port", "grpcs://host:port", "host:port", or unix: and a path. 0 or -EINVAL. */
MUST_CHECK int grpc_target_parse(struct str text, struct gateway_target *out_target);

/* grpc_conf.c */

directive_row grpc_read_pass;
int grpc_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);

#endif
