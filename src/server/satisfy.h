/*
 * `satisfy`: whether all access modules (struct module: access) must allow the request, or any one of them.
 */
#ifndef SERVER_SATISFY_H
#define SERVER_SATISFY_H

#include "server/request_state.h"

/* Clears the results when a request is located (again). */
void satisfy_reset(struct request_state *request);
/*
 * Calls `handler` of the module at `index` and returns its outcome; called by satisfy_run_module when there is no
 * trace (server/trace.h).
 */
enum outcome satisfy_call_module(struct request_state *request, unsigned index);
/* Runs the module at `index`, unless an access result makes it unnecessary. */
enum outcome satisfy_run_module(struct request_state *request, unsigned index);
/*
 * Combines the outcome of the last module, also after it was pending: with `satisfy: any` a denial (401, 403) is
 * stored until all access modules have run, and cleared if one of them allows the request.
 */
enum outcome satisfy_combine(struct request_state *request, enum outcome outcome);
/* No module responded: returns the stored denial, or 404. */
enum outcome satisfy_result(struct request_state *request);

#endif
