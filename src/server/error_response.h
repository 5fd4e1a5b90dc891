/*
 * Error responses: `error_page` and the built-in page, which is self-contained and shows no version.
 */
#ifndef SERVER_ERROR_RESPONSE_H
#define SERVER_ERROR_RESPONSE_H

#include "server/error_body.h"
#include "server/request_state.h"

/*
 * Makes the page of x->response (status >= 300, no body). Returns OUTCOME_INTERNAL_REDIRECT if error_page names a
 * local target (the caller locates it), else OUTCOME_RESPONDED. Called for every such response, of a module or of the
 * server.
 */
enum outcome error_response_page(struct request_state *request);
/* Returns true if error_page names the status. */
bool error_response_has_page(const struct core_site *site, int status);
/*
 * Called once the modules have responded: replaces the status of an error page by that of the error, maps nginx's
 * internal numbers to 400, and adds the error's fields. Returns 0 or -ENOMEM.
 */
MUST_CHECK int error_response_finish(struct request_state *request);

#endif
