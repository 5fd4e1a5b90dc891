/*
 * What is left of a reroute when the answer has come: fields that whoever rerouted the exchange has the word on (exchange_insist).
 */
#ifndef SERVER_REROUTE_H
#define SERVER_REROUTE_H

#include "server/request_state.h"

/* Puts them into the answer, in the place of its own. 0 or -ENOMEM. */
MUST_CHECK int reroute_insist(struct request_state *request);

#endif
