/*
 * Answers the challenge http-01 of ACME (RFC 8555 8.3) before any other rule of a server: requests for
 * /.well-known/acme-challenge/TOKEN with the file of that token, which a helper thread reads. Idle unless a server has
 * `ssl_certificate: acme`. Unknown tokens are left to the locations, where another client may store its own.
 */
#include "acme/acme.h"

#include "acme/acme_challenge.h"
#include "base/limits.h"
#include "base/list.h"
#include "http/exchange.h"
#include "server/module.h"

#include <errno.h>

struct acme_conf {
    const struct acme *acme;        /* complete when requests are handled */
};

struct challenge {
    struct op op;
    struct exchange *x;
    const char *folder;
    struct str token;               /* a copy in the arena */
    ssize_t length;                 /* of the text, or -errno */
    char text[LIMIT_ACME_AUTHORIZATION + 1]; /* one more, to detect longer files */
};

/* The configuration is passed to every scope. */
static int check_acme(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    ((struct acme_conf *)conf)->acme = reader->acme;
    return 0;
}

static bool acme_idle(const void *conf)
{
    const struct acme_conf *own = conf;

    return !own->acme || own->acme->count == 0;
}

static int read_challenge(void *argument)
{
    struct challenge *challenge = argument;

    challenge->length =
        acme_challenge_read(challenge->folder, challenge->token, challenge->text, sizeof(challenge->text));
    return 0;
}

static enum outcome respond_challenge(struct challenge *challenge)
{
    struct exchange *x = challenge->x;

    if (challenge->length == -ENOENT)
        return OUTCOME_DECLINED;
    if (challenge->length < 0)
        return exchange_error_response_log(x,
                                           challenge->length == -EMFILE || challenge->length == -ENFILE
                                               ? exchange_out_of_descriptors(x)
                                               : 500,
                                           LOG_ERROR, "cannot read the challenge \"" STR_FMT "\" in \"%s\" (%d: %s)",
                                           STR_ARG(challenge->token), challenge->folder, (int)-challenge->length,
                                           strerror((int)-challenge->length));
    x->response.status = 200;
    x->response.body = body_bytes(&x->arena, str_of(challenge->text, (size_t)challenge->length));
    if (!x->response.body ||
        headers_add(&x->response.headers, &x->arena, STR("Content-Type"), STR("application/octet-stream")) < 0 ||
        headers_add(&x->response.headers, &x->arena, STR("Cache-Control"), STR("no-store")) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

static void challenge_read(struct op *op, int result)
{
    struct challenge *challenge = container_of(op, struct challenge, op);
    struct exchange *x = challenge->x;

    if (result < 0)
        challenge->length = result;
    if (!x->cancelled)
        exchange_resume(x, respond_challenge(challenge));
    exchange_release(x);
}

static bool is_challenge(const struct exchange *x, struct str *out_token)
{
    static const struct str prefix = {ACME_CHALLENGE_URI, sizeof(ACME_CHALLENGE_URI) - 1};

    if (!exchange_in_server_rules(x) || !str_starts(x->request.path, prefix) ||
        (x->request.method != METHOD_GET && x->request.method != METHOD_HEAD))
        return false;
    *out_token = str_skip(x->request.path, prefix.length);
    return acme_token_valid(*out_token);
}

static enum outcome acme_handler(struct exchange *x, const void *conf, void *state)
{
    const struct acme_conf *own = conf;
    struct challenge *challenge;
    struct str token;

    if (!is_challenge(x, &token))
        return OUTCOME_DECLINED;
    challenge = arena_zalloc(&x->arena, 1, sizeof(*challenge));
    if (!challenge)
        return exchange_error_response(x, 500);
    challenge->op.done = challenge_read;
    challenge->x = x;
    challenge->folder = own->acme->challenges.data;
    challenge->token = arena_copy(&x->arena, token);
    if (!challenge->token.data)
        return exchange_error_response(x, 500);
    exchange_hold(x); /* the helper thread uses memory of the exchange's arena */
    worker_offload(exchange_worker(x), &challenge->op, read_challenge, challenge);
    return OUTCOME_PENDING;
}

const struct module module_acme = {
    .name = "acme",
    .conf_size = sizeof(struct acme_conf),
    .conf_check = check_acme,
    .idle = acme_idle,
    .server_rule = SERVER_RULE_RESPONDS,
    .handler = acme_handler,
};
