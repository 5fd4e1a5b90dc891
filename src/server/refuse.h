/*
 * Error answers: `error_page`, and the built-in page, plain and self-contained, without version.
 */
#ifndef SERVER_REFUSE_H
#define SERVER_REFUSE_H

#include "server/visit.h"

struct error_page {
    unsigned statuses[16];
    unsigned count;
    int answer_status;              /* `=200`; 0: keep; -1: `=` alone, what the target answers */
    const struct template *target;  /* a path, "@name", or a URL */
};

/*
 * Gives x->response (status >= 300, no body) its page. OUTCOME_REROUTE where error_page names a local target
 * (the caller routes again), OUTCOME_ANSWERED otherwise. To be called for every answer of that kind, by a module or by a refusal.
 */
enum outcome refuse_page(struct visit *visit);
/* True where error_page names the status. */
bool refuse_has_page(const struct core_site *site, int status);
/* Once the modules have answered: the status of an error page takes the place of its target's. */
void refuse_settle(struct visit *visit);
/* Reads an `error_page` row into a struct error_page. */
int refuse_read_row(struct conf_reader *reader, const struct conf_node *node, void *out);

#endif
