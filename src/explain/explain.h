/*
 * `sluice explain URL`: which server, location, modules and file answer a URL, and where each directive that
 * holds there was written. A worker like any other is asked by a real client, over a socket of this machine's own; but
 * modules that would ask others are passed over, nothing is logged, and the answer's body is not read.
 */
#ifndef EXPLAIN_EXPLAIN_H
#define EXPLAIN_EXPLAIN_H

#include "command/options.h"
#include "server/trace.h"
#include "site/configuration.h"

#define EXPLAIN_STEPS 64            /* more than LIMIT_INTERNAL_REDIRECTS lets happen */

/* A module that was asked, and what was so then. */
struct explain_step {
    const struct location *location;
    unsigned module;
    enum outcome outcome;
    bool passed_over;               /* it would have asked others */
    struct str path;                /* of the URI, decoded; copies */
    struct str query;
    int status;                     /* of the answer so far; 0: none */
};

struct explain {
    struct trace trace;             /* first */
    const struct configuration *configuration;
    const struct endpoint *endpoint;
    enum output_format format;
    const char *url;
    struct arena arena;
    struct explain_step steps[EXPLAIN_STEPS];
    size_t step_count;
};

/* A URL, in parts; texts point into it. */
struct explain_url {
    bool https;
    struct str host;                /* without brackets and port; empty: any */
    unsigned port;                  /* 0: none was named */
    struct str authority;           /* as it was written, for Host */
    struct str target;              /* path and query, at least "/" */
};

/* "http://host:80/path", "https://...", or a path alone. 0, or -EINVAL with one sentence in `out_error` (at least 256 bytes). */
MUST_CHECK int explain_url_parse(struct str text, struct explain_url *out_url, char *out_error, size_t size);
/* The address that such a request would come to: exact, else of all addresses. NULL with a sentence in `out_error`. */
const struct endpoint *explain_endpoint(const struct configuration *configuration, const struct explain_url *url,
                                        char *out_error, size_t size);
/* Asks over `fd` (closed at the end) until the first bytes of an answer, or the end. False: TLS failed. */
bool explain_request(int fd, const struct explain_url *url, bool tls);

/* The trace's two functions; `finished` prints the explanation on standard output and ends this process. */
enum outcome explain_step(struct trace *trace, struct request_state *request, unsigned index);
void explain_finished(struct trace *trace, struct request_state *request);

/* Appends the explanation of a request that is over. 0 or -ENOMEM. */
MUST_CHECK int explain_print(const struct explain *explain, struct request_state *request, struct buffer *out);

/* The command. Exit 0, or 1 where it cannot be explained. */
int command_explain(const struct options *options);

#endif
