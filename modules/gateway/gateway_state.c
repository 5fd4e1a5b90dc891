/*
 * The key that the states of exchanges are kept by.
 */
#include "gateway.h"

const struct module gateway_key = {.name = "gateway"};
