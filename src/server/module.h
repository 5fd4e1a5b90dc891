/*
 * The functions that a module may call. What a module itself is: module_interface.h.
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
struct when;                        /* site/when.h */

/* A module's own per-exchange memory: zeroed at first, in the exchange's arena. NULL when out of memory. */
void *exchange_state(struct exchange *x, const struct module *module, size_t size);
/* The same where it was asked for before; else NULL. */
void *exchange_state_found(const struct exchange *x, const struct module *module);

/* Ends OUTCOME_PENDING: the modules go on with `outcome` (ANSWERED, PASS, INTERNAL_REDIRECT ...). Queued; never inside the caller. */
void exchange_resume(struct exchange *x, enum outcome outcome);

/* Answers with a status: error pages and shape follow as for any other answer. Returns OUTCOME_ANSWERED. */
enum outcome exchange_error_response(struct exchange *x, int status);
/*
 * EMFILE or ENFILE stands in the way of x: connections that only wait give their descriptors back, and x's own ends with its answer. Returns the
 * status to refuse with, 503. Logged once per second, for all exchanges together.
 */
int exchange_out_of_descriptors(struct exchange *x);
/* The same with a line in the error log that says what was being done, and why: "...: open() failed (13: Permission denied)". */
enum outcome exchange_error_response_log(struct exchange *x, int status, enum log_level level, const char *format, ...) PRINTF_LIKE(4, 5);

/*
 * Goes on with another URI (index, error_page, try_files): `path` (decoded) is normalised; query data NULL keeps the request's. Returns
 * what the caller returns in turn: OUTCOME_INTERNAL_REDIRECT, or OUTCOME_ANSWERED with 500 and a log line for a bad path or the
 * internal redirect past LIMIT_INTERNAL_REDIRECTS.
 */
enum outcome exchange_internal_redirect(struct exchange *x, struct str path, struct str query);

/* Goes on in the server's location @name, with the URI as it is. OUTCOME_INTERNAL_REDIRECT; or OUTCOME_ANSWERED with 500 where there is none. */
enum outcome exchange_internal_redirect_named(struct exchange *x, struct str name);

/*
 * Goes on with another URI in this location: `path` (decoded) is normalised; query data NULL: none. 0, -EINVAL for a bad path, or -ENOMEM.
 */
MUST_CHECK int exchange_rewrite(struct exchange *x, struct str path, struct str query);
/* Looks for the location of the URI that exchange_rewrite has set, without asking the server's own rules again. Outcomes as of exchange_internal_redirect. */
enum outcome exchange_relocate(struct exchange *x);
/* `internal` locations may answer from now on. */
void exchange_enter_internal(struct exchange *x);
/* True while the server's own rules are asked, before a location is looked for (enum server_rule). */
bool exchange_in_server(const struct exchange *x);
/* The `return` of this scope does not answer, until another scope is entered: `rewrite` has ended before it. */
void exchange_skip_return(struct exchange *x);
/* True where it was skipped. */
bool exchange_return_skipped(const struct exchange *x);
/* The conditions of the location, in the order in which they are asked; NULL: no more. */
const struct when *exchange_when(const struct exchange *x, size_t index);
/*
 * One of them holds: its location takes the place of this one; NULL: none holds. OUTCOME_PASS, or OUTCOME_ANSWERED where the location
 * refuses the request.
 */
enum outcome exchange_apply_when(struct exchange *x, const struct when *when);
/* A module's conf of the location as it is now. */
const void *exchange_conf(const struct exchange *x, const struct module *module);

/*
 * Answers with a redirect. `location` is a URL, or a path beginning with "/" (percent-encoded): that one stays relative, unless
 * `absolute_redirect: on` asks for scheme, name and port before it, and begins with one slash alone. Returns OUTCOME_ANSWERED.
 */
enum outcome exchange_redirect(struct exchange *x, int status, struct str location);
/*
 * The page that x is answered with was made by this server: its Content-Security-Policy is this one, in the place of any other, until x is answered
 * with something else. 0 or -ENOMEM.
 */
MUST_CHECK int exchange_set_security_policy(struct exchange *x, struct str policy);
/* True where it has one: a second policy would only take away from it. */
bool exchange_has_security_policy(const struct exchange *x);
/* Ends the connection without an answer (`return: 444`): status 444 is what the log shows. Returns OUTCOME_ANSWERED. */
enum outcome exchange_cut(struct exchange *x);

/* A child's answer: its status and fields, those of a refusal, too; its body may be pulled. */
typedef void exchange_answered(struct exchange *child, void *owner);
/*
 * A child of x: an exchange that no client asked for, of the same server, by `uri` ("/auth?of=x"; internal locations answer, and no access module is asked).
 * `uri` with data NULL: by x's own, and where x stands, with what regular expressions captured there: the module that asks is the first that it comes to,
 * without being routed anew.
 * It is a GET without a body that has x's fields, but for those of a body; until the caller returns to the server, its request may be
 * changed. Once it is answered the owner is told, never inside this call, and calls exchange_child_end then or later. It is not
 * logged, shaped, or given an error page, and ends with x: then nobody is told, and nothing may be called on it.
 * With `answered` NULL nobody waits: the answer is thrown away, and x may be answered before it. Cut off it is with x, all the same.
 * 0, -EINVAL (no path), -EMFILE (LIMIT_SUBREQUESTS, LIMIT_DETACHED_SUBREQUESTS, LIMIT_SUBREQUEST_DEPTH) or -ENOMEM.
 */
MUST_CHECK int exchange_child(struct exchange *x, struct str uri, exchange_answered *answered, void *owner, struct exchange **out_child);
/* Fields that x is answered with, whoever answers it after an internal redirect, in the place of that one's own; not copied. Not on refusals. 0 or -ENOMEM. */
MUST_CHECK int exchange_set_headers_always(struct exchange *x, const struct headers *fields);
/* The body that x is answered with leaves at `rate` bytes a second (0: without a limit), whatever limit_rate says, after an internal redirect, too. */
void exchange_set_rate(struct exchange *x, uint64_t rate);
/* True where exchange_set_rate was called: *out_rate is what it said. */
bool exchange_rate(const struct exchange *x, uint64_t *out_rate);
/* What x is internally redirected to is asked for by GET (HEAD stays) and without a body, whatever the request was. */
void exchange_become_get(struct exchange *x);
/* The request has no body from now on: it was refused, or it broke off. What still comes of it is the session's to drop. */
void exchange_drop_body(struct exchange *x);
/* The owner has what it wants. A short rest of the body is still read, so that its connection may be kept; nothing may be called on it. */
void exchange_child_end(struct exchange *child);
/* The same, but all of its body is read, as far as memory and LIMIT_DETACHED_SUBREQUESTS allow, after x's end, too: it is of use to others. */
void exchange_child_leave(struct exchange *child);
/* No client asked for it. */
bool exchange_is_child(const struct exchange *x);

/*
 * Another protocol after 101: the session that takes the connection over from HTTP, embedded in the module's own. Of the exchange only that stays which its line in the access
 * log still needs, so that a connection may be silent for long and hold little.
 */
struct upgraded_session {
    struct session session;         /* .protocol is the module's; `open` is never called */
    void (*restore)(struct upgraded_session *upgraded, struct exchange *x); /* puts the module's state into x, for its late variables. Only inside upgraded_end */
    struct connection *connection;        /* the server's */
    struct upgraded_exchange *ended;          /* the same */
    uint64_t received, sent;        /* counted by the module: bytes from the client and to it */
};
/*
 * The head of 101 has left (the body of the answer is pulled, and says -EAGAIN): at the end of this turn x ends, and the connection is the upgraded's. What the client has
 * said since comes to its `consume`. Should the connection end before, it is just closed (`close`), which it is once in any case.
 */
void exchange_upgrade(struct exchange *x, struct upgraded_session *upgraded);
/* It has something to send again, or takes again what it had left. */
void upgraded_wake(struct upgraded_session *upgraded);
/* The line in the access log, once; `whole`: nothing was cut off. Nothing where the connection never was the upgraded's. */
void upgraded_end(struct upgraded_session *upgraded, bool whole);
/* One line in the error log. */
void upgraded_log(const struct upgraded_session *upgraded, enum log_level level, const char *what, int error, struct str server);

/* Of the server: what a module needs to know and ask. */
struct worker *exchange_worker(const struct exchange *x);
struct log *exchange_log(const struct exchange *x);
const struct clock *exchange_clock(const struct exchange *x);
/* The folder of the location's files, absolute, evaluated: `root`, or `alias`. data NULL: none. */
struct str exchange_root(struct exchange *x);
/*
 * Where the file of a URI path lies: the folder that may not be left, and the path from there, without a slash in front; by `root` or
 * `alias`. 0; -ENOENT where the location has neither, or the path cannot be one; or -ENOMEM.
 */
MUST_CHECK int exchange_file(struct exchange *x, struct str uri, struct str *out_root, struct str *out_path);
/*
 * Goes on in this location with the URI of a file (or folder) that exchange_file found: for it exchange_file gives the same file from
 * then on. As in nginx the path stays as it is for a folder by the alias of a regular expression. Errors as of exchange_rewrite.
 */
MUST_CHECK int exchange_use_file(struct exchange *x, struct str uri, bool folder);
/*
 * Notes that this server, not a server behind it, has made this Content-Type, and returns it: until the head is written
 * $sent_http_content_type gives it without "; charset=...", which nginx adds no sooner. The text lives as long as the exchange.
 */
struct str exchange_set_response_type(struct exchange *x, struct str type);
/* Media type of a path by `types` and `default_type`, with `charset`; noted by exchange_set_response_type. */
struct str exchange_media_type(struct exchange *x, struct str path);
/* Media type of a text that the configuration gives (`return`): the same, but text/plain where neither key says anything. */
struct str exchange_text_type(struct exchange *x);
/* `disable_symlinks` of the location. */
enum symlinks exchange_symlinks(const struct exchange *x);
/*
 * A root and a path beneath it become the folder behind which links are looked at, and the path from there. *out_symlinks: the rule that
 * holds; as in nginx from= with the whole path ends all checks. False: out of memory.
 */
bool exchange_symlinks_from(struct exchange *x, struct str *root, struct str *path, enum symlinks *out_symlinks);
/* The value of a template for this exchange. data NULL: out of memory. */
struct str exchange_eval(struct exchange *x, const struct template *template);
/*
 * A variable leads the path out of where it stands in the template, by "..": such a path is refused (http/url_traversal.h). `value` is what exchange_eval has
 * given, `path` the part of it that is a path. `encoded`: percent-encoded, as in a URL. True, too, where memory is out.
 */
bool exchange_path_traverses(struct exchange *x, const struct template *template, struct str value, struct str path, bool encoded);
/* The prefix by which the location was found ("/api/"); data NULL for a named one or a regular expression; for a server's own scope "/". */
struct str exchange_location(const struct exchange *x);
/* True where the URI is no longer the client's: the exchange was internally redirected. */
bool exchange_uri_changed(const struct exchange *x);
/* True where a location was looked for more than once: an internal redirect, or a `rewrite` of a location. */
bool exchange_is_internally_redirected(const struct exchange *x);
/*
 * With `ends`, from now on a client that ends its stream has left: the exchange is cancelled, answered or not (499 in the log). Without, a client
 * that only ends its own side still gets its answer.
 */
void exchange_end_with_client(struct exchange *x, bool ends);
/*
 * Whom the request comes from: the peer, or whom exchange_set_client has named in its place (AF_INET, AF_INET6 or AF_UNIX). For access, limits, logs.
 */
const struct sockaddr *exchange_client(const struct exchange *x);
/* Where the peer connected to; AF_UNSPEC: not known. */
void exchange_local_address(const struct exchange *x, union proxy_address *out);
/* The peer itself, whatever it says of others. */
const struct sockaddr *exchange_peer(const struct exchange *x);
/* The client came by TLS. */
bool exchange_is_secure(const struct exchange *x);
/* What a proxy before us said of the connection (`listen: ... proxy_protocol`); NULL: nothing. */
const struct proxy_header *exchange_proxy_header(const struct exchange *x);
/* The peer has named `client`, who it is from now on. `trusted`: what the request's fields say of those before the peer is believed, too. */
void exchange_set_client(struct exchange *x, const union proxy_address *client, bool trusted);
/* True where X-Forwarded-For and its kin come from a peer that is trusted. */
bool exchange_is_trusted(const struct exchange *x);
/* One line in the error log, with client, server, request and host behind it. */
void exchange_log_error(struct exchange *x, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);
/* True where error_page names the status, and either no error page is being made yet or recursive_error_pages is on. */
bool exchange_has_error_page(const struct exchange *x, int status);
/* `satisfy: any` holds: a refusal of one access module is no error yet. */
bool exchange_satisfies_any(const struct exchange *x);
/* True where a module wants the whole of the answer whose fields are there: ranges are ignored. */
bool exchange_needs_whole_body(const struct exchange *x);
/* Of an error page that is being made: what x is answered with is its own status, and not that of the error. */
void exchange_keep_status(struct exchange *x);
/* True while an error page is being made: its status is settled, so ranges and preconditions do not apply. */
bool exchange_is_error_page(const struct exchange *x);

struct file_cache *worker_file_cache(struct worker *worker);
/* Its number among all workers of all generations, which a dead one's upgraded has anew: for what is held in shared memory. */
unsigned worker_place(const struct worker *worker);
/* What all workers have counted together, whichever of them answers (master/counters.h). */
void worker_counters(const struct worker *worker, struct counters_total *out_total);
/* Counts the exchange's connection as one that is written to from now on, not only once the answer has begun. */
void exchange_count_as_writing(struct exchange *x);
/* The worker's connections to servers behind it: upstream/upstream_pool.h. */
struct upstream_pool *worker_upstreams(struct worker *worker);
/* The worker's side of a cache: cache/cache_store.h. */
struct cache_store *worker_cache(struct worker *worker, const struct cache_conf *conf);
/* A timer and a helper thread for modules: contracts as loop_timer and loop_offload. */
void worker_timer(struct worker *worker, struct op *op, uint64_t delay_ms);
void worker_offload(struct worker *worker, struct op *op, int (*work)(void *argument), void *argument);
void worker_cancel(struct worker *worker, struct op *op);
/* The clock of its loop, and what reads files for bodies of which bytes are wanted. */
const struct clock *worker_clock(const struct worker *worker);
struct body_reader *worker_reader(struct worker *worker);
/* What the module's worker_start made. */
void *worker_state(const struct worker *worker, const struct module *module);

#endif
