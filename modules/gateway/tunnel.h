/*
 * What follows 101: both connections become a tunnel.
 */
#ifndef MODULES_GATEWAY_TUNNEL_H
#define MODULES_GATEWAY_TUNNEL_H

#include "gateway.h"

/* 101 has left: both connections are the tunnel's, and the exchange is about to end. 0 or -ENOMEM. */
MUST_CHECK int gateway_tunnel(struct gateway_request *p);

#endif
