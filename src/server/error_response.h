/*
 * Error answers: `error_page`, and the built-in page, plain and self-contained, without version.
 */
#ifndef SERVER_ERROR_RESPONSE_H
#define SERVER_ERROR_RESPONSE_H

#include "server/request_state.h"

/* nginx's numbers for what error_page can tell apart; they leave as 400. */
enum { STATUS_CERTIFICATE_BAD = 495, STATUS_CERTIFICATE_ABSENT = 496 };

/*
 * Gives x->response (status >= 300, no body) its page. OUTCOME_INTERNAL_REDIRECT where error_page names a local target
 * (the caller routes again), OUTCOME_ANSWERED otherwise. To be called for every answer of that kind, by a module or by a refusal.
 */
enum outcome error_response_page(struct request_state *request);
/* True where error_page names the status. */
bool error_response_has_page(const struct core_site *site, int status);
/* The number that leaves for a status: itself, or 400 for one of nginx's. */
int error_response_status(int status);
/*
 * Once the modules have answered: the status of an error page takes the place of its target's, and 400 that of a number which is no status; and what the
 * error said is said with its page. 0 or -ENOMEM.
 */
MUST_CHECK int error_response_finish(struct request_state *request);

#endif
