/*
 * Variables of every gateway: nginx's $upstream_.
 */
#ifndef MODULES_GATEWAY_GATEWAY_VARIABLES_H
#define MODULES_GATEWAY_GATEWAY_VARIABLES_H

#include "server/module.h"

extern const struct variable_table gateway_variables;

#endif
