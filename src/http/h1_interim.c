/*
 * Interim responses (1xx) of one HTTP/1 exchange: queued, and sent before all other bytes.
 */
#include "http/h1_session.h"

#include "base/limits.h"

#include <errno.h>

int h1_interim_queue(struct h1_exchange *h, int status, const struct headers *headers)
{
    int error;

    h->interims.max = LIMIT_INTERIM_BYTES;
    error = h1_write_interim(&h->interims, status, headers);
    if (error == 0)
        h1_session_wake(h->session);
    return error == -ENOBUFS ? 0 : error;
}

/* Frees the memory at the first call after all bytes were returned: the caller has sent them by then. */
struct str h1_interim_next(struct h1_exchange *h, size_t room)
{
    struct str next = str_slice(str_skip(buffer_str(&h->interims), h->interims_at), 0, room);

    h->interims_at += next.length;
    if (str_empty(next)) {
        buffer_finish(&h->interims);
        h->interims_at = 0;
    }
    return next;
}
