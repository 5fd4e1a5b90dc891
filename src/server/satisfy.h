/*
 * `satisfy`: whether every module that decides who may (struct module: access) has to be content, or any one of them.
 */
#ifndef SERVER_SATISFY_H
#define SERVER_SATISFY_H

#include "server/request_state.h"

/* Where a request is located, also anew: nobody has said anything yet. */
void satisfy_begin(struct request_state *request);
/* What the module at `index` says, which answers; what satisfy_ask asks where nobody looks on (server/trace.h). */
enum outcome satisfy_answer(struct request_state *request, unsigned index);
/* Asks the module at `index`, which answers, unless it need not be asked any more. */
enum outcome satisfy_ask(struct request_state *request, unsigned index);
/*
 * What the module asked last has said, now or after it had kept the exchange: with `satisfy: any` a refusal (401, 403) waits until every other one was
 * asked, and is forgotten where one is content.
 */
enum outcome satisfy_judge(struct request_state *request, enum outcome outcome);
/* No module has answered: the refusal that waits, or 404. */
enum outcome satisfy_end(struct request_state *request);

#endif
