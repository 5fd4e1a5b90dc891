/*
 * The key of the gateway's state in an exchange.
 */
#include "gateway.h"

const struct module gateway_key = {.name = "gateway"};
