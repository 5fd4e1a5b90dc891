/*
 * Password hashing is slow by design, and therefore limited to LIMIT_HASHES_AT_ONCE helper threads; the other threads
 * remain available for files. Before a waiting check starts, the login is looked up among the verified ones again, so
 * that many concurrent requests with the same credentials cause few hashes.
 * A verified login is identified by an HMAC with a random key of this process: memory holds neither the password nor
 * a digest of it that could be attacked offline. The state of the file is checked again after TRUSTED_MS; when it
 * has changed, the login is verified again.
 */
#include "logins.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>

#define WAYS       4
#define TRUSTED_MS 1000 /* until the state of the file is checked again */

struct known {
    unsigned char key[LOGIN_KEY];
    struct password_file_state state;
    uint64_t looked_ms;
    uint64_t used_ms; /* time of the last use; 0: unused entry */
};

struct logins {
    struct worker *worker;
    struct list waiting;
    unsigned waiting_count, active;
    bool ending;
    unsigned char secret[32];
    struct known known[LIMIT_LOGINS_KNOWN];
};

struct logins *logins_create(struct worker *worker)
{
    struct logins *logins = calloc(1, sizeof(*logins));

    if (!logins)
        return NULL;
    logins->worker = worker;
    list_init(&logins->waiting);
    if (RAND_bytes(logins->secret, sizeof(logins->secret)) == 1)
        return logins;
    free(logins);
    return NULL;
}

void logins_destroy(struct logins *logins)
{
    if (!logins)
        return;
    logins->ending = true;
    if (logins->active == 0)
        OPENSSL_clear_free(logins, sizeof(*logins));
}

/*
 * Computes the HMAC that identifies a login. Its input contains the lengths, so that different logins never have the
 * same input.
 */
static int make_key(const struct logins *logins, struct login *login)
{
    const struct password_check *check = &login->check;
    struct {
        uint64_t path, user, password;
    } lengths = {strlen(check->path), check->user.length, strlen(check->password)};
    const struct str parts[] = {{(const char *)&lengths, sizeof(lengths)},
                                {check->path, lengths.path},
                                check->user,
                                {check->password, lengths.password}};
    unsigned char text[sizeof(lengths) + LIMIT_LOGIN_PATH + 2 * LIMIT_LOGIN_TEXT];
    unsigned length = LOGIN_KEY;
    size_t at = 0;
    bool good;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].length > sizeof(text) - at)
            return -E2BIG;
        memcpy(text + at, parts[i].data, parts[i].length);
        at += parts[i].length;
    }
    good = HMAC(EVP_sha256(), logins->secret, sizeof(logins->secret), text, at, login->key, &length) != NULL;
    OPENSSL_cleanse(text, sizeof(text));
    return good ? 0 : -ENOMEM;
}

static struct known *known_set(struct logins *logins, const struct login *login)
{
    uint32_t number;

    memcpy(&number, login->key, sizeof(number));
    return &logins->known[number % (LIMIT_LOGINS_KNOWN / WAYS) * WAYS];
}

/* Monotonic time in ms, never 0. */
static uint64_t now_ms(const struct logins *logins)
{
    return worker_clock(logins->worker)->monotonic_ms + 1;
}

static struct known *find_known(struct logins *logins, const struct login *login)
{
    struct known *set = known_set(logins, login);

    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].used_ms && u64_sub_sat(now_ms(logins), set[i].used_ms) < LIMIT_LOGIN_KNOWN_MS &&
            CRYPTO_memcmp(set[i].key, login->key, LOGIN_KEY) == 0)
            return &set[i];
    }
    return NULL;
}

static void remember_login(struct logins *logins, const struct login *login)
{
    struct known *known = find_known(logins, login);
    struct known *set = known_set(logins, login);

    for (unsigned i = 0; !known && i < WAYS; i++) {
        if (!set[i].used_ms)
            known = &set[i];
    }
    if (!known) {
        known = set;
        for (unsigned i = 1; i < WAYS; i++) {
            if (set[i].used_ms < known->used_ms)
                known = &set[i];
        }
    }
    memcpy(known->key, login->key, LOGIN_KEY);
    known->state = login->check.state;
    known->looked_ms = known->used_ms = now_ms(logins);
}

static void remove_known(struct logins *logins, const struct login *login)
{
    struct known *known = find_known(logins, login);

    if (known)
        OPENSSL_cleanse(known, sizeof(*known));
}

/*
 * Returns true if the login was verified recently: no check is needed. Otherwise sets check.known, with which
 * password_verify may only compare the state of the file.
 */
static bool is_known(struct logins *logins, struct login *login)
{
    struct known *known = find_known(logins, login);

    login->check.known = known != NULL;
    if (!known)
        return false;
    login->check.state = known->state;
    if (u64_sub_sat(now_ms(logins), known->looked_ms) > TRUSTED_MS)
        return false;
    known->used_ms = now_ms(logins);
    login->check.result = PASSWORD_GOOD;
    return true;
}

static int check_password_work(void *argument)
{
    return password_verify(argument);
}

static void login_check_done(struct op *op, int result);

static void start_login_check(struct logins *logins, struct login *login)
{
    logins->active++;
    login->op.done = login_check_done;
    worker_offload(logins->worker, &login->op, check_password_work, &login->check);
}

/* Starts waiting checks up to the limit. `done` is called at once for logins verified in the meantime. */
static void start_waiting_checks(struct logins *logins)
{
    struct list *link;

    while (logins->active < LIMIT_HASHES_AT_ONCE && (link = list_pop(&logins->waiting)) != NULL) {
        struct login *login = container_of(link, struct login, link);

        logins->waiting_count--;
        if (is_known(logins, login))
            login->done(login, 0);
        else
            start_login_check(logins, login);
    }
}

static void login_check_done(struct op *op, int result)
{
    struct login *login = container_of(op, struct login, op);
    struct logins *logins = login->logins;

    logins->active--;
    if (result == 0 && login->check.result == PASSWORD_GOOD)
        remember_login(logins, login);
    else
        remove_known(logins, login);
    login->done(login, login->cancelled ? -ECANCELED : result);
    if (!logins->ending)
        start_waiting_checks(logins);
    else if (logins->active == 0)
        OPENSSL_clear_free(logins, sizeof(*logins));
}

int login_check(struct logins *logins, struct login *login)
{
    int error = make_key(logins, login);

    login->logins = logins;
    list_init(&login->link);
    if (error < 0 || is_known(logins, login))
        return error;
    if (logins->waiting_count >= LIMIT_LOGINS)
        return -EBUSY;
    list_push(&logins->waiting, &login->link);
    logins->waiting_count++;
    start_waiting_checks(logins);
    return -EAGAIN;
}

void login_cancel(struct login *login)
{
    login->cancelled = true;
    if (!op_idle(&login->op)) {
        worker_cancel(login->logins->worker, &login->op);
        return;
    }
    list_remove(&login->link);
    login->logins->waiting_count--;
    login->done(login, -ECANCELED);
}
