/*
 * The tunnel between client and upstream after a 101.
 */
#ifndef MODULES_GATEWAY_TUNNEL_H
#define MODULES_GATEWAY_TUNNEL_H

#include "gateway.h"

/* Called after 101 was sent: moves both connections to a tunnel, which ends the exchange. 0 or -ENOMEM. */
MUST_CHECK int gateway_tunnel(struct gateway_request *p);

#endif
