/*
 * Error answers: `error_page`, and the built-in page, plain and self-contained, without version.
 */
#ifndef SERVER_ERROR_RESPONSE_H
#define SERVER_ERROR_RESPONSE_H

#include "server/error_body.h"
#include "server/request_state.h"

/*
 * Gives x->response (status >= 300, no body) its page. OUTCOME_INTERNAL_REDIRECT where error_page names a local target
 * (the caller routes again), OUTCOME_ANSWERED otherwise. To be called for every answer of that kind, by a module or by a refusal.
 */
enum outcome error_response_page(struct request_state *request);
/* True where error_page names the status. */
bool error_response_has_page(const struct core_site *site, int status);
/*
 * Once the modules have answered: the status of an error page takes the place of its target's, and 400 that of a number which is no status; and what the
 * error said is said with its page. 0 or -ENOMEM.
 */
MUST_CHECK int error_response_finish(struct request_state *request);

#endif
