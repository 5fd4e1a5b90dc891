/*
 * `proxy_pass`: requests passed to a server behind this one, and its answers passed on. What
 * the files of the module share.
 */
#ifndef MODULES_PROXY_PROXY_H
#define MODULES_PROXY_PROXY_H

#include "http/h1_reply.h"
#include "http/h1_request.h"
#include "modules/gateway/buffered_body.h"
#include "modules/gateway/spool.h"
#include "proxy_cache.h"
#include "proxy_rewrite.h"
#include "proxy_slice.h"
#include "server/module.h"
#include "upstream/upstream_pool.h"

/* "http://backend/uri", taken apart. */
struct gateway_target {
    bool https;
    struct str authority;           /* "backend", "127.0.0.1:9001", "unix:/run/app.sock" */
    struct str uri;                 /* from the slash on; data NULL: none */
};

struct gateway_pass {
    const struct template *text;    /* NULL: nothing is passed on here */
    struct gateway_target target;     /* where there is no variable in it */
    const struct upstream *upstream; /* the same; else the group is found for each request */
    bool of_location;               /* written in a location: locations inside it do not inherit it */
};

/* proxy_set_header: an empty value takes the field away. */
struct proxy_field {
    struct str name;
    const struct template *value;
};

struct proxy_fields {
    struct proxy_field *items;
    size_t count;
};

/* When another server may be asked: bits, in the order of gateway_next_words. */
enum gateway_next {
    NEXT_ERROR = 1 << 0,
    NEXT_TIMEOUT = 1 << 1,
    NEXT_INVALID_HEADER = 1 << 2,
    NEXT_NON_IDEMPOTENT = 1 << 3,
    NEXT_OFF = 1 << 4,
    NEXT_HTTP_403 = 1 << 5,
    NEXT_HTTP_404 = 1 << 6,
    NEXT_HTTP_429 = 1 << 7,
    NEXT_HTTP_500 = 1 << 8,
    NEXT_HTTP_502 = 1 << 9,
    NEXT_HTTP_503 = 1 << 10,
    NEXT_HTTP_504 = 1 << 11,
};

/* What is kept of bodies while the other side cannot take it. */
struct gateway_buffering {
    bool requests;                  /* a request's body is read whole before a server is asked */
    struct str requests_folder;
    bool answers;                   /* an answer is read as fast as the server gives it */
    uint64_t count, size;           /* of what is kept of it in memory: blocks, and bytes of one */
    uint64_t busy;                  /* no effect */
    uint64_t file_max;
    struct str folder;
};

struct gateway_request;

/* What is spoken with the server. Requests are written, and answers read, by these alone; all else is the same. */
struct gateway {
    const char *scheme, *tls_scheme; /* for the log */
    uint16_t port;                  /* where none is said; 0: 80 or 443 */
    int (*parse)(struct str text, struct gateway_target *out_target); /* what variables made: 0 or -EINVAL */
    bool measured;                  /* a request's body has a length before it begins */
    bool rewrites;                  /* what the answer says of places and cookies is put into the client's view */
    int (*write_head)(struct gateway_request *p, struct str *out_fault); /* into p->head. 0, -ENOMEM, -ENOENT (404), or -EINVAL with *out_fault, which with 0 says what was replaced */
    int (*begin)(struct gateway_request *p); /* a connection is there: 0 or -ENOMEM */
    int (*next)(struct gateway_request *p, size_t room, struct chunk *out); /* what is sent: as h1_request_next */
    enum h1_reply_step (*read)(struct gateway_request *p, struct str *in, struct str *out_part); /* as h1_reply_read; p->reply has what came */
    enum h1_reply_step (*ended)(struct gateway_request *p, bool cut);
    void (*finish)(struct gateway_request *p);
};

struct proxy_conf {
    const struct gateway *gateway;
    struct gateway_pass pass;
    struct gateway_buffering buffering;
    struct conf_rows set_headers;   /* struct proxy_fields, outer scopes first */
    struct conf_words hide_headers, pass_headers;
    uint64_t connect_timeout_ms, send_timeout_ms, read_timeout_ms;
    uint64_t buffer_size;           /* the longest head of an answer */
    unsigned next;                  /* enum gateway_next */
    uint64_t next_tries;            /* 0: as many as there are servers */
    uint64_t next_timeout_ms;       /* 0: no limit */
    struct tls_client_settings ssl; /* proxy_ssl_... */
    struct conf_rows ssl_commands;  /* struct tls_command */
    bool ssl_server_name, ssl_session_reuse; /* the same in `ssl`, the other way round */
    const struct template *ssl_name; /* NULL: the host of proxy_pass */
    bool ignore_client_abort;
    int http_version;               /* no effect */
    struct conf_rows redirects;     /* struct proxy_rewrite; none: default */
    struct conf_rows cookie_domains, cookie_paths; /* struct proxy_rewrite */
    struct conf_rows cookie_flags;  /* struct proxy_flags */
    const struct template *method;  /* NULL: the client's */
    const struct template *set_body; /* NULL: the client's, or none */
    bool drop_body, drop_fields;    /* of the client nothing goes on: proxy_pass_request_... is off */
    bool pass_body, pass_fields;    /* the same as they are written */
    bool intercept_errors;
    bool force_ranges;
    const struct template *limit_rate; /* NULL: none */
    int greets;                     /* with a header of the PROXY protocol: 0 no, else its version */
    struct proxy_cache_conf cache;
    const struct template *remote_addr, *peer_addr, *scheme; /* for the fields that are always set */
};

/* One server that was asked; for the $upstream_ variables. */
struct gateway_attempt {
    struct gateway_attempt *next;
    struct str server;
    int status;                     /* 0: no answer came */
    uint64_t begun_us;
    uint64_t connect_us, header_us, whole_us; /* since begun_us; UINT64_MAX: not come that far */
    uint64_t bytes_received;
    uint64_t bytes_sent;
};

enum gateway_stage {
    GATEWAY_READING_BODY,                  /* the client's body is read first */
    GATEWAY_CONNECTING,               /* or waiting for a name to resolve */
    GATEWAY_SENDING,                   /* the request leaves, no answer yet */
    GATEWAY_RESPONDING,                /* the answer's head was given to the server: its body is pulled */
    GATEWAY_DONE,
};

/* One exchange that is passed on. In its arena; zeroed at first. */
struct gateway_request {
    struct exchange *x;             /* NULL: never passed on */
    const struct proxy_conf *conf;
    struct gateway_target target;
    struct upstream_group *group;
    struct upstream_tls tls;
    char greeting[PROXY_HEADER_WRITTEN];
    struct upstream_choice choice;
    struct upstream_waiter waiter;
    struct upstream_peer *peer;     /* valid while `connection` is there, and in its `failed` */
    struct upstream_connection *connection; /* owned until released; NULL: none */
    struct cached *cached;          /* its part in the cache; NULL: none */
    struct proxy_slice slice;       /* of a child that has a piece of its parent's answer */
    struct slicing *slicing;        /* its answer is made of pieces; NULL: it is not */
    struct proxy_update update;     /* of a child that is to fetch anew what its parent answers with meanwhile */
    struct gateway_attempt *attempts, *attempt; /* all, and the newest */
    unsigned tries;
    uint64_t begun_ms;
    enum gateway_stage stage;
    struct str method_name;         /* and its method: the client's, or of proxy_method */
    enum method method;
    struct str uri;                 /* what the request line says */
    struct str own_body;            /* sent in the place of the client's body; data NULL: that is sent */
    size_t own_body_at;
    struct body own;                /* and what it is pulled by */
    uint64_t content_length;        /* of the request, as it leaves; BODY_LENGTH_UNKNOWN: chunked */
    struct str head;                /* the same */
    struct buffered_body *made;         /* closed at the exchange's end: what was kept of the client's body, by whomever; NULL: nothing */
    struct buffered_body *kept;         /* the same, where that is still the request's body; NULL: it is passed on as it comes */
    struct h1_request request;
    struct proxy_expect *expect;    /* the timer of a body that is held back until 100; NULL: none runs */
    struct h1_reply reply;
    void *reader;                   /* the gateway's own, where it is not HTTP */
    bool expects;                   /* the head that is sent has Expect: 100-continue */
    bool spent;                     /* a server that was asked before has had some of the client's body */
    bool asked;                     /* the whole request has been given to the wire */
    bool blocked;                   /* the wire had no room for more of it */
    bool starting;                  /* inside `answer`, which returns what else exchange_resume would tell */
    bool fresh;                     /* no idle connection is taken again: one was stale */
    bool reused;                    /* the connection has carried requests before */
    bool heard;                     /* a byte of the answer has come */
    struct str upgrade;             /* the protocol that the client asks for; empty: none */
    bool upgraded;                  /* it was changed: a tunnel takes over once 101 has left */
    uint64_t interims_ms;           /* LIMIT_INTERIM_MS for each 1xx that was forwarded, on the loop's clock: how far it is ahead tells how many came at once */
    bool patient;                   /* upgraded, or a stream of events: it may be quiet for long */

    struct body body;               /* of the answer */
    struct buffer input;            /* its bytes that came and were not pulled; never moved while it holds any */
    size_t input_at;
    bool buffers;                   /* the body is kept in `spool`, however much comes */
    struct spool *spool;            /* owned; NULL: none of it has come */
    struct pipe *pipe;              /* held: through which the body passes; NULL: it is copied */
    struct chunk spliced;           /* what is in it and was not pulled */
    bool copied;                    /* there was no pipe for it, or nobody to take it */
    struct gateway_rate_limit *rate_limit;        /* proxy_limit_rate; NULL: it is read as fast as it comes */
    bool body_whole;
    bool awaited;                   /* next has said -EAGAIN: a wake is owed */
    int body_error;
};

extern const struct module module_proxy;
extern const struct directive proxy_directives[];
extern const char *const gateway_ignored_headers[]; /* in the order of enum gateway_ignore */
extern const char *const gateway_next_words[]; /* in the order of enum gateway_next */
extern const struct variable_table proxy_variables;

/* proxy_conf.c */

directive_row proxy_read_pass, proxy_read_fields, gateway_read_buffers, proxy_read_ssl_command;
int proxy_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);

/* proxy_target.c */

/* Takes "http://backend/uri" apart; slices of `text`. 0, or -EINVAL. */
MUST_CHECK int proxy_target_parse(struct str text, struct gateway_target *out_target);
/* What goes on the request line, by nginx's rules. 0, or a status: 404 where it leads out of the path of proxy_pass by "..". */
int gateway_target_uri(const struct gateway_request *p, struct str *out_uri);
/* 80 or 443. */
uint16_t proxy_target_port(const struct gateway_target *target);
/* "http", "https" and so on. */
const char *gateway_scheme(const struct gateway_request *p);
/* "127.0.0.1:9001" for Host and $proxy_host; "localhost" for unix:. */
struct str gateway_target_host(const struct gateway_target *target);

/* proxy_http.c */

extern const struct gateway proxy_gateway;

/* proxy_headers.c */

/* "name:port" as the client asked for it; empty where it named none. data NULL: no name, or out of memory. */
struct str gateway_request_host(struct exchange *x);
/* What a peer that is trusted says in fields of this name, all together; empty: nothing. data NULL: out of memory. */
struct str gateway_forwarded_field(struct exchange *x, struct str name);
/* The protocol that the client asks to change to, where that may be passed on; else empty. */
struct str proxy_upgrade(const struct exchange *x);
/* True where the client's Connection names fields that would be passed on else: the server answers another request than was asked. */
bool gateway_drops_fields(const struct headers *asked);
/* X-Forwarded-For as it goes on: what a trusted peer said, and its address; else the client's address alone. data NULL: out of memory. */
struct str gateway_forwarded_for(struct gateway_request *p);
/* The request's head into p->head. 0, -ENOMEM, or -EINVAL with *out_fault. */
MUST_CHECK int proxy_write_head(struct gateway_request *p, struct str *out_fault);
/* The fields of an answer that are not of its connection, into `out`. 0 or -ENOMEM. */
MUST_CHECK int gateway_end_to_end_fields(const struct gateway_request *p, const struct headers *headers, struct headers *out);
/* Those of them that the client is told, in `arena`. */
MUST_CHECK int gateway_pass_fields(const struct gateway_request *p, const struct headers *headers, struct arena *arena, struct headers *out);

/* proxy.c */

/* Goes on with what the cache has decided, later than inside `answer`. */
void gateway_resume(struct gateway_request *p, enum outcome outcome);
/* The answer of a module that passes requests on, and its cancel. */
enum outcome gateway_answer(struct exchange *x, const struct proxy_conf *conf);
void gateway_cancel(struct exchange *x, void *state);
/* What every such configuration needs. 0, -EINVAL (reported) or -ENOMEM. */
int gateway_conf_complete(struct proxy_conf *conf, struct conf_reader *reader, const struct conf_node *at);
/* Writes the request's head and asks the first server. 0 or a status. */
int gateway_begin(struct gateway_request *p);

/* request_body.c */

/* Reads the client's body first, where that is wanted and there is one; gateway_begin follows. False: it need not be waited for. */
bool gateway_buffer_request(struct gateway_request *p);
/* True where a server that was asked before an internal redirect has had some of x's body, and that was not kept. */
bool gateway_body_is_lost(const struct exchange *x);
/* x's body is read whole, whoever answers x: as buffered_body_read. */
MUST_CHECK int gateway_buffer_body(struct exchange *x, void (*done)(void *owner, int error), void *owner);
/* What was kept of x's body, whole, is the child's body, too. 0 or -errno. */
MUST_CHECK int gateway_share_body(struct exchange *x, struct exchange *child);
/* Where the request's body is pulled from. */
struct body *gateway_request_body(struct gateway_request *p);
/* True where some of the body was given away, and cannot be had again. */
bool gateway_body_is_spent(const struct gateway_request *p);

/* attempt.c */

/* Asks the next server, or waits for its name. 0, or the status to refuse with (already said in the log). */
int gateway_connect(struct gateway_request *p);
/* Lets the connection go, and frees what is not in the arena. */
void gateway_release(struct gateway_request *p, bool keep);
/* The same with a connection that carries no further request. */
void gateway_discard(struct gateway_request *p);
/* What went wrong, in the error log. */
void gateway_log(const struct gateway_request *p, enum log_level level, const char *what, int error);
/* The connection goes on sending, from the loop. */
void gateway_request_woken(void *owner);
/* The client's own body failed: that is no fault of the server. */
void gateway_request_failed(struct gateway_request *p, int error);
/* The clock of the connection: what is waited for now. */
void gateway_set_timeout(struct gateway_request *p);
/* The connection ended, or did not come, before the answer was whole. */
void gateway_connection_failed(struct gateway_request *p, int error);
/* Another server is asked, or the exchange is refused: `reason` is an enum gateway_next. */
void gateway_try_next(struct gateway_request *p, unsigned reason, int status);
/* The request's head is written anew, and a server is asked again: the first one that the group chooses. */
void gateway_retry(struct gateway_request *p);
/* True where gateway_try_next would ask another server. */
bool gateway_may_try_next(const struct gateway_request *p, unsigned reason);
/* No answer will come: refuses with `status`. */
void gateway_fail(struct gateway_request *p, int status);

/* max_forwards.c */

/* True for OPTIONS and TRACE with Max-Forwards: 0, which are answered here (RFC 9110 7.6.2). */
bool gateway_is_last_hop(const struct exchange *x);
/* Answers them: 204 for OPTIONS, 405 for TRACE. */
enum outcome gateway_answer_last_hop(struct exchange *x);
/* Max-Forwards of OPTIONS and TRACE goes on as one less. 0 or -ENOMEM. */
MUST_CHECK int gateway_forward_hops(const struct gateway_request *p, struct headers *fields);

/* accel.c */

/* What X-Accel-Limit-Rate says is the rate at which the answer leaves; what is no number counts as nothing. */
void gateway_accel_rate(struct gateway_request *p, const struct headers *said);
/* X-Accel-Charset among `said` becomes the charset of Content-Type in `headers`, where that has none. 0 or -ENOMEM. */
MUST_CHECK int gateway_accel_charset(struct gateway_request *p, const struct headers *said, struct headers *headers);
/* X-Accel-Redirect: another URI of this server answers, internal ones too, and p is over. False: there is none. */
bool gateway_accel_redirect(struct gateway_request *p);

/* response.c */

/* Reads on where there is room for all that one receive may bring. */
void gateway_read(struct gateway_request *p);
/* Bytes of the answer, as wire->received. */
size_t gateway_received(void *user, struct str bytes);
/* The connection is gone while the body was on its way. */
void gateway_body_fail(struct gateway_request *p, int error);
/* The body ends here, in order. */
void gateway_body_end(struct gateway_request *p);
void gateway_body_init(struct gateway_request *p);
/* The answer is whole, and the connection may carry another; `surplus`: if the server had not sent more than that. */
void gateway_response_end(struct gateway_request *p, bool surplus);
/* True where what a server said of an error is not passed on, since error_page has something else: x->response is that. */
bool gateway_intercept(struct gateway_request *p, int status, const struct headers *said);
/* Tells who pulls the body, once for each -EAGAIN. */
void gateway_wake_body(struct gateway_request *p);

/* tunnel.c */

/* 101 has left: both connections are the tunnel's, and the exchange is about to end. 0 or -ENOMEM. */
MUST_CHECK int gateway_tunnel(struct gateway_request *p);

/* proxy_expect.c */

struct proxy_expect;
/* True where the server is sent `Expect: 100-continue`: the client is waiting, and its body is passed on as it comes. */
bool proxy_forwards_expect(const struct gateway_request *p);
/* Holds p->request's body back until proxy_expect_met, or LIMIT_CONTINUE_MS have passed. 0 or -ENOMEM. */
MUST_CHECK int proxy_expect_begin(struct gateway_request *p);
/* The server said 100: the body is pulled from the loop on, and the client gets its 100 with that. No effect once the answer has begun. */
void proxy_expect_met(struct gateway_request *p);
/* Stops the timer; a body that is held back stays so. */
void proxy_expect_end(struct gateway_request *p);

/* rate_limit.c */

struct gateway_rate_limit;
directive_row gateway_read_rate;
/* The head has come: what is read from now on is counted, where the configuration says so. 0 or -ENOMEM. */
MUST_CHECK int gateway_rate_limit_begin(struct gateway_request *p);
/* True where nothing more is to be read yet: gateway_read is called when it is. */
bool gateway_is_rate_limited(struct gateway_request *p);
/* Nothing is read any more. Accepts one without a rate_limit. */
void gateway_rate_limit_end(struct gateway_request *p);

/* response_range.c */

/* The answer stands in x->response: the part that was asked for takes its place (proxy_force_ranges), or 416, and p->stage is GATEWAY_DONE. 0 or -ENOMEM. */
MUST_CHECK int gateway_apply_range(struct gateway_request *p);

/* response_spool.c */

/* The head has come: true where its body is to be kept. */
bool gateway_wants_spool(const struct gateway_request *p);
/* A piece of the body. 0 or -ENOMEM. */
MUST_CHECK int gateway_spool_put(struct gateway_request *p, struct str part);

/* splice.c */

/* True where the rest of the body is to pass through a pipe: it is not read ahead. */
bool gateway_splices(const struct gateway_request *p);
/* Asks for more of it in the pipe, for who takes `accept`. False: it is to be read. */
bool gateway_splice(struct gateway_request *p, unsigned accept);
/* So many bytes are in the pipe, as wire->piped. */
void gateway_piped(void *user, size_t count);
/* What is in the pipe is lent, once. False: nothing. */
bool gateway_spliced(struct gateway_request *p, struct chunk *out);

#endif
