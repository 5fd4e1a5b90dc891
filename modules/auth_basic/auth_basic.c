/*
 * `auth_basic`: user name and password (RFC 7617), verified against a password file by a helper thread.
 */
#include "logins.h"

#include "base/base64.h"
#include "base/limits.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stddef.h>

struct auth_basic_conf {
    const struct template *realm; /* NULL: no authentication */
    struct str file;
};

struct login_attempt {
    struct login login;
    struct exchange *x; /* held while the check is pending */
    const struct auth_basic_conf *conf;
    struct str user;    /* `user` and `password` end with a NUL */
    struct str password;
    bool verified;      /* the result also applies after internal redirects */
};

#define AT(field) offsetof(struct auth_basic_conf, field)

extern const struct module module_auth_basic;

/* As in nginx, the text may contain its own quotes; they are removed. */
static int read_realm(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct conf_words words;
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0 || str_equal(text, STR("off")) || str_equal(text, STR("false")))
        return error;
    if (str_starts(text, STR("\"")) && text.length > 1 && str_ends(text, STR("\""))) {
        error = conf_read_words(reader, node, &words);
        if (error == 0 && words.count == 1)
            text = words.items[0];
    }
    return error < 0 ? error : conf_read_template_word(reader, node, text, out);
}

/*
 * Reports faults as warnings only: the file may be created later, and the worker reads it with other rights than the
 * loader.
 */
static void check_password_file(struct conf_reader *reader, const struct conf_node *node, struct str path)
{
    struct str text = arena_copy(reader->arena, path);
    char user[64], scheme[16];
    unsigned line = 0;
    int result = text.data ? password_file_check(text.data, &line, user, sizeof(user), scheme, sizeof(scheme)) : 0;

    if (result < 0 && result != -EACCES)
        conf_warning(reader->errors, node->mark, STR("all requests are rejected until it can be read"),
                     "auth_basic_user_file \"" STR_FMT "\" cannot be read (%d: %s)", STR_ARG(path), -result,
                     strerror(-result));
    if (result > 0)
        conf_warning(reader->errors, node->mark, STR("set the password again: htpasswd -B FILE USER"),
                     STR_FMT ":%u: user \"%s\" cannot log in: the password is stored as %s, which is too weak",
                     STR_ARG(path), line, user, scheme);
}

static int check_auth_basic(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    const struct auth_basic_conf *own = conf;
    const struct conf_node *realm = conf_map_get(at, STR("auth_basic"));
    const struct conf_node *file = conf_map_get(at, STR("auth_basic_user_file"));

    if (file && own->file.length >= LIMIT_LOGIN_PATH) {
        conf_error(reader->errors, file->mark, STR(""), "a path must have fewer than %d bytes", LIMIT_LOGIN_PATH);
        return -EINVAL;
    }
    if (file)
        check_password_file(reader, file, own->file);
    if (realm && own->realm && str_empty(own->file) && reader->scope == SCOPE_LOCATION) {
        conf_error(reader->errors, realm->mark, STR("add auth_basic_user_file: users.htpasswd"),
                   "auth_basic needs auth_basic_user_file");
        return -EINVAL;
    }
    return 0;
}

static const struct directive directives[] = {
    {.name = "auth_basic",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(realm),
     .row_size = sizeof(const struct template *),
     .row = read_realm,
     .syntax = "text | off",
     .example = "auth_basic: Members only",
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .help = "Requires a user name and a password of auth_basic_user_file; browsers show this text in the login "
             "dialog. off: not required. A worker computes two password hashes at a time, 256 requests wait, and "
             "further ones are answered with 503: limit_req in the same location rejects excess requests earlier."},
    {.name = "auth_basic_user_file",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_PATH,
     .opened = true,
     .offset = AT(file),
     .example = "auth_basic_user_file: users.htpasswd",
     .help = "A file with one user per line, as htpasswd -B writes them: name:hash, by bcrypt, SHA-crypt ($5$, "
             "$6$), yescrypt or scrypt. $apr1$, the default of htpasswd, is accepted but weak: an attacker with a "
             "copy of the file finds passwords quickly. bcrypt (htpasswd -B) is better. $1$, SHA-1 and DES are "
             "rejected. A changed file is read again within a second."},
    {0},
};

/* A quoted-string (RFC 9110 5.6.4). */
static struct str quote_string(struct arena *arena, struct str text)
{
    char *into = arena_alloc(arena, 2 * text.length + 1);
    size_t length = 0;

    for (size_t i = 0; into && i < text.length; i++) {
        char c = text.data[i];

        if (c == '"' || c == '\\')
            into[length++] = '\\';
        into[length++] = (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c;
    }
    return str_of(into, length);
}

static enum outcome respond_unauthorized(struct exchange *x, const struct auth_basic_conf *own)
{
    struct str realm = exchange_eval(x, own->realm);
    struct str value;

    exchange_error_response(x, 401);
    if (realm.data)
        realm = quote_string(&x->arena, realm);
    value = realm;
    if (realm.data)
        value = arena_join(&x->arena,
                           (const struct str[]){STR("Basic realm=\""), realm, STR("\", charset=\"UTF-8\"")}, 3);
    if (!value.data || headers_set(&x->response.headers, &x->arena, STR("WWW-Authenticate"), value) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

/* With `satisfy any`, another access module may allow the request: a failed login is then not logged as an error. */
static enum log_level level_of(const struct exchange *x)
{
    return exchange_satisfies_any(x) ? LOG_INFO : LOG_ERROR;
}

static enum outcome respond_busy(struct exchange *x)
{
    exchange_error_response_log(x, 503, LOG_WARN, "auth_basic: too many password checks are waiting");
    if (headers_set(&x->response.headers, &x->arena, STR("Retry-After"), STR("5")) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

static enum outcome respond_unreadable_file(struct exchange *x, const struct auth_basic_conf *own, int error)
{
    if (error == -EBUSY)
        return respond_busy(x);
    return exchange_error_response_log(x, error == -ENOENT ? 403 : 500, LOG_ERROR,
                                       "auth_basic: \"" STR_FMT "\" cannot be read (%d: %s)",
                                       STR_ARG(own->file), -error, strerror(-error));
}

static enum outcome login_outcome(struct login_attempt *attempt)
{
    const struct password_check *check = &attempt->login.check;
    const struct auth_basic_conf *own = attempt->conf;
    struct exchange *x = attempt->x;

    attempt->verified = true;
    switch (check->result) {
    case PASSWORD_GOOD:
        return OUTCOME_ALLOWED;
    case PASSWORD_BAD:
        exchange_log_error(x, level_of(x), "user \"" STR_FMT "\": password mismatch", STR_ARG(attempt->user));
        break;
    case PASSWORD_UNKNOWN_USER:
        exchange_log_error(x, level_of(x), "user \"" STR_FMT "\" was not found in \"" STR_FMT "\"",
                           STR_ARG(attempt->user), STR_ARG(own->file));
        break;
    case PASSWORD_WEAK:
        exchange_log_error(x, LOG_ERROR,
                           STR_FMT ":%u: user \"" STR_FMT "\" cannot log in: the password is stored as %s, which is "
                                                          "too weak; set it again: htpasswd -B FILE USER",
                           STR_ARG(own->file), check->line, STR_ARG(attempt->user), check->scheme);
        break;
    case PASSWORD_COSTLY:
        exchange_log_error(
            x, LOG_ERROR,
            STR_FMT ":%u: user \"" STR_FMT "\" cannot log in: the hash takes too long (bcrypt up to a cost "
                    "of %d, SHA-crypt up to %d rounds)",
            STR_ARG(own->file), check->line, STR_ARG(attempt->user), LIMIT_BCRYPT_COST, LIMIT_SHA_ROUNDS);
        break;
    }
    return respond_unauthorized(x, own);
}

/* Overwrites a secret in the arena. No other reference to these bytes may exist. Accepts data NULL. */
static void wipe_secret(struct str secret)
{
    if (secret.data)
        OPENSSL_cleanse((char *)(uintptr_t)secret.data, secret.length);
}

static void password_checked(struct login *login, int error)
{
    struct login_attempt *attempt = container_of(login, struct login_attempt, login);
    struct exchange *x = attempt->x;

    wipe_secret(attempt->password);
    if (!x->cancelled && error != -ECANCELED)
        exchange_resume(x, error < 0 ? respond_unreadable_file(x, attempt->conf, error) : login_outcome(attempt));
    exchange_release(x);
}

/* Splits "user:password". 0; -EINVAL: no valid credentials; or -ENOMEM. */
static int split_credentials(struct arena *arena, struct str both, struct str *out_user, struct str *out_password)
{
    if (!both.data || str_find(both, ':') < 0)
        return -EINVAL;
    *out_password = arena_copy(arena, str_skip(both, (size_t)str_find(both, ':') + 1));
    *out_user = arena_copy(arena, str_slice(both, 0, (size_t)str_find(both, ':')));
    if (!out_user->data || !out_password->data)
        return -ENOMEM;
    if (str_empty(*out_user) || out_user->length > LIMIT_LOGIN_TEXT || out_password->length >= LIMIT_LOGIN_TEXT ||
        str_find(*out_password, '\0') >= 0 || str_find(*out_user, '\n') >= 0)
        return -EINVAL;
    return 0;
}

/* Parses "Basic dXNlcjpwYXNzd29yZA==". Errors as split_credentials; on an error the decoded password is wiped. */
static int read_credentials(struct exchange *x, struct str *out_user, struct str *out_password)
{
    struct str field = headers_value(&x->request.headers, STR("Authorization")), both;
    int error;

    if (!str_equal_nocase(str_slice(field, 0, 6), STR("Basic ")) || field.length > 4 * LIMIT_LOGIN_TEXT)
        return -EINVAL;
    both = base64_decode(&x->arena, str_trim(str_skip(field, 6)));
    error = split_credentials(&x->arena, both, out_user, out_password);
    wipe_secret(both);
    if (error < 0)
        wipe_secret(*out_password);
    return error;
}

static enum outcome check_login(struct exchange *x, struct logins *logins, struct login_attempt *attempt)
{
    int error = login_check(logins, &attempt->login);

    if (error == -EAGAIN) {
        exchange_hold(x);
        return OUTCOME_PENDING;
    }
    wipe_secret(attempt->password);
    return error < 0 ? respond_unreadable_file(x, attempt->conf, error) : login_outcome(attempt);
}

static enum outcome auth_basic_handler(struct exchange *x, const void *conf, void *state)
{
    const struct auth_basic_conf *own = conf;
    struct login_attempt *attempt, **noted;
    struct str user = {NULL, 0}, password = {NULL, 0};
    int error;

    if (str_empty(own->file))
        return exchange_error_response_log(x, 403, LOG_ERROR, "auth_basic: no auth_basic_user_file is set");
    noted = exchange_state(x, &module_auth_basic, sizeof(struct login_attempt *));
    if (noted && *noted && (*noted)->verified && str_equal((*noted)->conf->file, own->file))
        return (*noted)->login.check.result == PASSWORD_GOOD ? OUTCOME_ALLOWED : respond_unauthorized(x, own);
    error = read_credentials(x, &user, &password);
    if (error == -EINVAL)
        return respond_unauthorized(x, own);
    attempt = arena_zalloc(&x->arena, 1, sizeof(*attempt));
    if (error < 0 || !attempt || !noted) {
        wipe_secret(password);
        return exchange_error_response(x, 500);
    }
    *attempt = (struct login_attempt){.x = x, .conf = own, .user = user, .password = password};
    attempt->login.check =
        (struct password_check){.path = own->file.data, .user = user, .password = password.data};
    attempt->login.done = password_checked;
    *noted = attempt;
    return check_login(x, state, attempt);
}

static void auth_basic_cancel(struct exchange *x, void *state)
{
    struct login_attempt **attempt = exchange_state_found(x, &module_auth_basic);

    login_cancel(&(*attempt)->login);
}

static int auth_basic_start(struct worker *worker, void **out_state)
{
    *out_state = logins_create(worker);
    return *out_state ? 0 : -ENOMEM;
}

static void auth_basic_stop(void *state)
{
    logins_destroy(state);
}

static bool auth_basic_idle(const void *conf)
{
    const struct auth_basic_conf *own = conf;

    return !own->realm;
}

const struct module module_auth_basic = {
    .name = "auth_basic",
    .directives = directives,
    .conf_size = sizeof(struct auth_basic_conf),
    .conf_check = check_auth_basic,
    .worker_start = auth_basic_start,
    .worker_stop = auth_basic_stop,
    .idle = auth_basic_idle,
    .handler = auth_basic_handler,
    .cancel = auth_basic_cancel,
    .access = true,
};
