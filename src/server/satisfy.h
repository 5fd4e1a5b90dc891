/*
 * `satisfy`: whether all access modules \(struct module: access\) must allow the request, or any one of them.
 */
#ifndef SERVER_SATISFY_H
#define SERVER_SATISFY_H

#include "server/request_state.h"

/* Where a request is located, also anew: nobody has said anything yet. */
void satisfy_reset(struct request_state *request);
/* What the module at `index` says, which answers; what satisfy_run_module asks where nobody looks on (server/trace.h). */
enum outcome satisfy_call_module(struct request_state *request, unsigned index);
/* Asks the module at `index`, which answers, unless it need not be asked any more. */
enum outcome satisfy_run_module(struct request_state *request, unsigned index);
/*
 * What the module asked last has said, now or after it had kept the exchange: with `satisfy: any` a refusal (401, 403) waits until every other one was
 * asked, and is forgotten where one is content.
 */
enum outcome satisfy_combine(struct request_state *request, enum outcome outcome);
/* No module has answered: the refusal that waits, or 404. */
enum outcome satisfy_result(struct request_state *request);

#endif
