/*
 * `sluice explain URL` prints the server, location, modules and file that answer a URL, and the position of each
 * applicable directive. A normal worker gets a request over a private socket. Modules that use the network or shared
 * counters are skipped, and there is no access log.
 */
#ifndef EXPLAIN_EXPLAIN_H
#define EXPLAIN_EXPLAIN_H

#include "base/limits.h"
#include "command/options.h"
#include "server/trace.h"
#include "site/configuration.h"

/* At most 64 modules run in the server's rules, and in the location, of each path. Further steps are not recorded. */
#define EXPLAIN_STEPS (2 * 64 * (LIMIT_INTERNAL_REDIRECTS + 2))

/* A module that was called, and the state before. */
struct explain_step {
    const struct location *location;
    unsigned module;
    enum outcome outcome;
    bool not_called;                /* skipped because of its explain_mode */
    struct str path;                /* of the URI, decoded; copies */
    struct str query;
    int status;                     /* response status so far; 0: none */
};

struct explain {
    struct trace trace;             /* first member */
    const struct configuration *configuration;
    const struct endpoint *endpoint;
    enum output_format format;
    const char *url;
    struct arena arena;
    struct explain_step steps[EXPLAIN_STEPS];
    size_t step_count;
};

/* A parsed URL; its texts point into the argument. */
struct explain_url {
    bool https;
    struct str host;                /* without brackets and port; empty: any */
    unsigned port;                  /* 80 or 443 unless written; 0: a path alone, any port */
    struct str authority;           /* as written, for Host */
    struct str target;              /* path and query as written; may lack the first slash */
};

/*
 * Parses "http://host:80/path", "https://...", or a path alone. 0, or -EINVAL with an error text in `out_error` (at
 * least 256 bytes).
 */
MUST_CHECK int explain_url_parse(struct str text, struct explain_url *out_url, char *out_error, size_t size);
/* The listening address for a request for the URL: an exact one, else a wildcard. NULL with a text in `out_error`. */
const struct endpoint *explain_endpoint(const struct configuration *configuration, const struct explain_url *url,
                                        char *out_error, size_t size);
/*
 * Sends the request over `fd`, and waits for the first byte of a response or the end of the connection. Closes `fd`.
 * False: the handshake, the send or the wait failed.
 */
bool explain_request(int fd, const struct explain_url *url, bool tls);

/* The trace's two functions; `finished` prints the explanation on standard output and exits the process. */
enum outcome explain_step(struct trace *trace, struct request_state *request, unsigned index);
void explain_finished(struct trace *trace, struct request_state *request);

/* Appends the explanation of a finished request. 0 or -ENOMEM. */
MUST_CHECK int explain_print(const struct explain *explain, struct request_state *request, struct buffer *out);

/* The command. Exit status 0, or 1 if there is no explanation. */
int command_explain(const struct options *options);

#endif
