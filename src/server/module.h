/*
 * The functions that a module may call. The module interface itself: module_interface.h.
 */
#ifndef SERVER_MODULE_H
#define SERVER_MODULE_H

#include "conf/directive.h"
#include "http/protocol.h"
#include "io/file_cache.h"
#include "site/module_interface.h"
#include "wire/proxy_header.h"

struct cache_conf;
struct cache_store;
struct upstream_pool;
struct worker;
struct counters_total;
struct status_zones;
struct when_block;                  /* site/when.h */

/*
 * Returns a module's per-exchange memory, in the exchange's arena: zeroed on the first call. NULL when out of
 * memory.
 */
void *exchange_state(struct exchange *x, const struct module *module, size_t size);
/* Returns the memory of an earlier exchange_state call, else NULL. */
void *exchange_state_found(const struct exchange *x, const struct module *module);
/*
 * Passes the memory of an earlier exchange_state call of x to its subrequest, which has none of this module yet.
 * Returns new memory of x, zeroed. NULL: out of memory, or x has none; nothing has changed. The passed memory remains
 * in the arena of x, which the subrequest references.
 */
void *exchange_state_pass(struct exchange *x, struct exchange *child, const struct module *module, size_t size);

/*
 * Ends OUTCOME_PENDING: processing continues with `outcome` (OUTCOME_RESPONDED, OUTCOME_DECLINED ...). Queued; never
 * runs inside the caller.
 */
void exchange_resume(struct exchange *x, enum outcome outcome);

/* Responds with a status: error pages and filters follow as for any other response. Returns OUTCOME_RESPONDED. */
enum outcome exchange_error_response(struct exchange *x, int status);
/*
 * Handles EMFILE or ENFILE for x: closes idle connections to free descriptors, and closes x's own after its
 * response. Returns the status to respond with, 503. Logged once per second for all exchanges together.
 */
int exchange_out_of_descriptors(struct exchange *x);
/*
 * Returns true if a line about an operation that failed with `error` (-errno) may be logged now. A resource that has
 * run out, of descriptors, memory, disk space or ports, is logged once per second for all exchanges together.
 */
bool exchange_may_log_error(struct exchange *x, int error);
/*
 * As exchange_error_response, with an error log line that states the operation and the cause: "...: open() failed
 * (13: Permission denied)".
 */
enum outcome exchange_error_response_log(struct exchange *x, int status, enum log_level level, const char *format,
                                         ...) PRINTF_LIKE(4, 5);

/*
 * Continues with another URI (index, error_page, try_files): `path` (decoded) is normalised; query data NULL keeps
 * the request's. Returns the value that the caller must return: OUTCOME_INTERNAL_REDIRECT, or OUTCOME_RESPONDED with
 * 500 and a log line for a bad path or beyond LIMIT_INTERNAL_REDIRECTS.
 */
enum outcome exchange_internal_redirect(struct exchange *x, struct str path, struct str query);

/*
 * Continues in the server's location @name, with the URI unchanged. Returns OUTCOME_INTERNAL_REDIRECT, or
 * OUTCOME_RESPONDED with 500 if the location does not exist.
 */
enum outcome exchange_internal_redirect_named(struct exchange *x, struct str name);

/*
 * Replaces the URI within this location: `path` (decoded) is normalised; query data NULL: none. Returns 0, -EINVAL
 * for a bad path, or -ENOMEM.
 */
MUST_CHECK int exchange_rewrite(struct exchange *x, struct str path, struct str query);
/*
 * Finds the location of the URI set by exchange_rewrite, without running the server-level rules again. Outcomes as
 * of exchange_internal_redirect.
 */
enum outcome exchange_relocate(struct exchange *x);
/* Allows `internal` locations from now on. */
void exchange_enter_internal(struct exchange *x);
/* Returns true while the server-level rules run, before a location is found (enum server_rule). */
bool exchange_in_server_rules(const struct exchange *x);
/* Disables the `return` of this scope until another scope is entered: `rewrite` ended before it. */
void exchange_skip_return(struct exchange *x);
/* Returns true if `return` is disabled. */
bool exchange_return_skipped(const struct exchange *x);
/* Returns the blocks of `when` of the location in evaluation order; NULL: no more. */
const struct when_block *exchange_when_block(const struct exchange *x, size_t index);
/*
 * Enters the location of a block whose conditions hold; NULL: no such block. Returns OUTCOME_DECLINED, or
 * OUTCOME_RESPONDED if the location rejects the request.
 */
enum outcome exchange_apply_when_block(struct exchange *x, const struct when_block *when);
/* Returns a module's configuration in the current location. */
const void *exchange_conf(const struct exchange *x, const struct module *module);

/*
 * Responds with a redirect. `location` is a URL, or a path beginning with "/" (percent-encoded): a path begins with
 * exactly one slash and stays relative, unless `absolute_redirect: on` adds scheme, name and port. Returns
 * OUTCOME_RESPONDED.
 */
enum outcome exchange_redirect(struct exchange *x, int status, struct str location);
/*
 * Sets the Content-Security-Policy of a page made by this server, in place of any other, until x gets another
 * response. Returns 0 or -ENOMEM.
 */
MUST_CHECK int exchange_set_security_policy(struct exchange *x, struct str policy);
/* Returns true if exchange_set_security_policy applies: add_header adds no second policy then. */
bool exchange_has_security_policy(const struct exchange *x);
/* Closes the connection without a response (`return: 444`): the log shows status 444. Returns OUTCOME_RESPONDED. */
enum outcome exchange_close_without_response(struct exchange *x);

/* A subrequest's response: its status and fields, also those of an error; its body may be pulled. */
typedef void exchange_subrequest_responded(struct exchange *child, void *owner);
/*
 * Starts a subrequest of x: an exchange without a client, of the same server, with `uri` ("/auth?of=x"; internal
 * locations respond, and access modules do not run). With uri data NULL it has x's URI, location and regular
 * expression captures, and starts at the calling module without being located again.
 * It is a GET without a body and with x's fields, except those that frame a body; until the caller returns to the
 * server, its request may be changed. When it has a response, `responded` is called, never inside this call, and the
 * owner calls exchange_subrequest_end then or later. A subrequest is not logged or filtered, gets no error page, and is
 * aborted when x ends: then `responded` is not called, and the subrequest must not be used any more.
 * With `responded` NULL the response is discarded, and x may complete before it. It is still aborted if x is aborted.
 * Returns 0, -EINVAL (no path), -EMFILE (LIMIT_SUBREQUESTS, LIMIT_DETACHED_SUBREQUESTS, LIMIT_SUBREQUEST_DEPTH) or
 * -ENOMEM.
 */
MUST_CHECK int exchange_subrequest(struct exchange *x, struct str uri, exchange_subrequest_responded *responded,
                                   void *owner, struct exchange **out_child);
/*
 * Sets fields of x's final response, also after an internal redirect, replacing that response's own. The texts are not
 * copied. Errors and redirects of the client do not get them. Returns 0 or -ENOMEM.
 */
MUST_CHECK int exchange_override_headers(struct exchange *x, const struct headers *fields);
/*
 * Sets the rate of x's response body in bytes per second (0: unlimited) in place of limit_rate, also after an
 * internal redirect.
 */
void exchange_set_rate(struct exchange *x, uint64_t rate);
/* Returns true if exchange_set_rate was called, with its rate in *out_rate. */
bool exchange_rate(const struct exchange *x, uint64_t *out_rate);
/* Makes a request a GET without a body; a GET or HEAD request remains unchanged. */
void exchange_change_to_get(struct exchange *x);
/* Removes a request body that was rejected or is incomplete. The session discards further bytes of it. */
void exchange_drop_body(struct exchange *x);
/*
 * Ends the owner's use of the subrequest: the owner must not access it afterwards. The server reads a short rest of
 * its body, so that the upstream connection stays reusable.
 */
void exchange_subrequest_end(struct exchange *child);
/*
 * As exchange_subrequest_end, but reads the whole body, also after x's end, within memory limits and
 * LIMIT_DETACHED_SUBREQUESTS: a cache may store it.
 */
void exchange_subrequest_detach(struct exchange *child);
/* Returns true for a subrequest. */
bool exchange_is_subrequest(const struct exchange *x);
/* Returns the exchange of the client: x, or that of which it is a subrequest. It outlives its subrequests. */
struct exchange *exchange_main(const struct exchange *x);

/*
 * The session of another protocol after 101, embedded in the module's own struct. The server frees the exchange except
 * for the data of its access log line, so a long-lived connection holds little memory.
 */
struct upgraded_session {
    struct session session;             /* .protocol is the module's; `open` is never called */
    /* Puts the module's state into x for variables evaluated late; called only inside upgraded_end. */
    void (*restore)(struct upgraded_session *upgraded, struct exchange *x);
    struct connection *connection;      /* set by the server */
    struct upgraded_exchange *ended;    /* set by the server */
    uint64_t received, sent;            /* counted by the module: bytes from the client and to it */
};
/*
 * Switches the connection to `upgraded` at the end of this loop iteration, when the head of the 101 was pulled (its
 * body returned -EAGAIN), and ends x. Bytes received since go to `consume`. If the connection closes earlier, only
 * `close` is called, which happens once in any case.
 */
void exchange_upgrade(struct exchange *x, struct upgraded_session *upgraded);
/* Signals that the session has output again, or accepts input again. */
void upgraded_wake(struct upgraded_session *upgraded);
/*
 * Writes the access log line, once; `whole`: both directions ended without an error. Does nothing if the connection was
 * never upgraded.
 */
void upgraded_end(struct upgraded_session *upgraded, bool whole);
/* Writes one line to the error log. */
void upgraded_log(const struct upgraded_session *upgraded, enum log_level level, const char *what, int error,
                  struct str server);

/* Return the worker that serves x, the error log, and the clock of the worker's loop (set once per iteration). */
struct worker *exchange_worker(const struct exchange *x);
struct log *exchange_log(const struct exchange *x);
const struct clock *exchange_clock(const struct exchange *x);
/* Returns the location's evaluated absolute root directory: `root` or `alias`. data NULL: none. */
struct str exchange_root(struct exchange *x);
/*
 * Maps a URI path to a file by `root` or `alias`: the root directory, which may not be left, and the path below it,
 * without a leading slash. Returns 0; -ENOENT if the location has neither or the path is invalid; or -ENOMEM.
 */
MUST_CHECK int exchange_file(struct exchange *x, struct str uri, struct str *out_root, struct str *out_path);
/*
 * As exchange_rewrite, with the URI of a file or directory found by exchange_file, which then maps to the same file. As
 * in nginx the path does not change for a directory in the alias of a regular expression.
 */
MUST_CHECK int exchange_rewrite_to_file(struct exchange *x, struct str uri, bool directory);
/*
 * Marks a Content-Type as made by this server rather than by an upstream server, and returns it: until the head is
 * written $sent_http_content_type has no "; charset=...", because nginx adds the charset when it writes the head. The
 * text lives as long as the exchange.
 */
struct str exchange_set_response_type(struct exchange *x, struct str type);
/*
 * Returns the media type of a path by `types` and `default_type`, with `charset`; marked by
 * exchange_set_response_type.
 */
struct str exchange_media_type(struct exchange *x, struct str path);
/*
 * Returns the media type of a configured text (`return`): as exchange_media_type, but text/plain if neither `types`
 * nor `default_type` is set.
 */
struct str exchange_text_type(struct exchange *x);
/*
 * Adds `charset` to the Content-Type of an upstream response, if the configuration sets it and the type takes one
 * (http/mime.h); marked as by exchange_set_response_type. Returns 0 or -ENOMEM.
 */
MUST_CHECK int exchange_add_charset(struct exchange *x, struct str *type);
/* Returns `disable_symlinks` of the location. */
enum symlinks exchange_symlinks(const struct exchange *x);
/*
 * Splits a root and the path below it into the directory below which symbolic links are checked, and the path from
 * there. *out_symlinks: the rule that applies; as in nginx from= with the whole path disables all checks. False: out
 * of memory.
 */
bool exchange_symlinks_from(struct exchange *x, struct str *root, struct str *path, enum symlinks *out_symlinks);
/* Returns the value of a template for this exchange. data NULL: out of memory. */
struct str exchange_eval(struct exchange *x, const struct template *template);
/*
 * Checks whether variables make a path leave its directory by "..": such a path is rejected (http/url_traversal.h).
 * `value` is the result of exchange_eval, `path` its path component. `encoded`: percent-encoded, as in a URL. Also
 * true when out of memory.
 */
bool exchange_path_traverses(struct exchange *x, const struct template *template, struct str value, struct str path,
                             bool encoded);
/*
 * Returns the location's prefix ("/api/"); data NULL for a named location or a regular expression; "/" for the
 * server's own scope.
 */
struct str exchange_location(const struct exchange *x);
/*
 * Returns the location as it is written in the configuration: "/api/", "@name", a pattern; empty: the server's scope.
 */
struct str exchange_location_name(const struct exchange *x);
/* Returns $status as a number; 0: there was no response. */
int exchange_status(const struct exchange *x);
/* Returns true if an internal redirect has replaced the client's URI. */
bool exchange_uri_changed(const struct exchange *x);
/* Returns true if a location was searched more than once: an internal redirect, or a `rewrite` of a location. */
bool exchange_is_internally_redirected(const struct exchange *x);
/*
 * With `ends`, a client that half-closes cancels the exchange, with or without a response (499 in the log). Without,
 * it still gets its response.
 */
void exchange_end_with_client(struct exchange *x, bool ends);
/*
 * Returns the client's address: the peer's, or that of exchange_set_client (AF_INET, AF_INET6 or AF_UNIX). For
 * access rules, limits and logs.
 */
const struct sockaddr *exchange_client(const struct exchange *x);
/* Returns the local address of the connection; AF_UNSPEC: not known. */
void exchange_local_address(const struct exchange *x, union proxy_address *out);
/* Returns the peer's address, not that of exchange_set_client. */
const struct sockaddr *exchange_peer(const struct exchange *x);
/* Returns true if the client uses TLS. */
bool exchange_is_secure(const struct exchange *x);
/* Returns the PROXY protocol header (`listen: ... proxy_protocol`); NULL: none. */
const struct proxy_header *exchange_proxy_header(const struct exchange *x);
/*
 * Sets the client's address, which a trusted peer has sent. `trusted`: the forwarding fields of the request are
 * trusted, too.
 */
void exchange_set_client(struct exchange *x, const union proxy_address *client, bool trusted);
/* Returns true if X-Forwarded-For and related fields come from a trusted peer. */
bool exchange_is_trusted(const struct exchange *x);
/* Writes one line to the error log, followed by client, server, request and host. */
void exchange_log_error(struct exchange *x, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);
/*
 * Returns true if error_page names the status, and no error page is in progress that began where recursive_error_pages
 * is off.
 */
bool exchange_has_error_page(const struct exchange *x, int status);
/* Returns true with `satisfy: any`: the denial of one access module is not final. */
bool exchange_satisfies_any(const struct exchange *x);
/* Returns true if a module needs the complete response whose fields are set: ranges are ignored. */
bool exchange_needs_whole_body(const struct exchange *x);
/* Sends the error page in progress with its own status instead of the error's. */
void exchange_keep_status(struct exchange *x);
/* Returns true while an error page is made: its status is set, so ranges and preconditions do not apply. */
bool exchange_is_error_page(const struct exchange *x);

/* Returns the cache of open files: io/file_cache.h. */
struct file_cache *worker_file_cache(struct worker *worker);
/*
 * Returns the worker's number among all workers of all generations, reused by the replacement of a dead worker: for
 * shared memory.
 */
unsigned worker_slot(const struct worker *worker);
/* Returns the worker's index among the workers of its configuration, which its replacement has, too. */
unsigned worker_number(const struct worker *worker);
/* Returns the sums of the counters of all workers (master/counters.h). */
void worker_counters(const struct worker *worker, struct counters_total *out_total);
/*
 * Returns the zones of `status_zone` (base/status_zone.h). Sets *out_slots to the number of slots of workers so far,
 * for status_zone_sum.
 */
const struct status_zones *worker_status_zones(const struct worker *worker, unsigned *out_slots);
/* Counts the exchange's connection as writing from now on, before its response starts. */
void exchange_count_as_writing(struct exchange *x);
/*
 * Writes `digits` lower-case hexadecimal digits of the kernel's random generator, not all zero, without a terminating
 * NUL. `digits` is even and at most 64. 0, or -EAGAIN before the generator is initialised.
 */
MUST_CHECK int worker_random_id(struct worker *worker, char *out, size_t digits);
/* Returns the worker's connections to upstream servers: upstream/upstream_pool.h. */
struct upstream_pool *worker_upstreams(struct worker *worker);
/* Returns the worker's side of a cache: cache/cache_store.h. */
struct cache_store *worker_cache(struct worker *worker, const struct cache_conf *conf);
/* As loop_timer, loop_offload and loop_cancel (io/loop.h). The owner of op sets op->done before, and outlives it. */
void worker_timer(struct worker *worker, struct op *op, uint64_t delay_ms);
void worker_offload(struct worker *worker, struct op *op, int (*work)(void *argument), void *argument);
void worker_cancel(struct worker *worker, struct op *op);
/* Return the clock of the worker's loop, and the reader for body_file_read_with (http/body.h). */
const struct clock *worker_clock(const struct worker *worker);
struct body_reader *worker_reader(struct worker *worker);
/* Returns the result of the module's worker_start. */
void *worker_state(const struct worker *worker, const struct module *module);

#endif
