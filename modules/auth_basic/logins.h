/*
 * The logins of a worker: checks running on a helper thread, checks waiting for one, and recently verified logins.
 */
#ifndef AUTH_BASIC_LOGINS_H
#define AUTH_BASIC_LOGINS_H

#include "password_file.h"

#include "server/module.h"

#define LOGIN_KEY 32

struct logins;

/* One check, embedded in its owner, which must outlive the call of `done`. */
struct login {
    struct password_check check;                    /* `path`, `user` and `password` point to memory of the owner */
    void (*done)(struct login *login, int error);   /* result of password_verify; -ECANCELED after login_cancel */
    struct logins *logins;
    struct list link;                               /* in logins->waiting */
    struct op op;
    unsigned char key[LOGIN_KEY];
    bool cancelled;
};

/* Creates the logins of a worker. NULL when out of memory or without random bytes. */
struct logins *logins_create(struct worker *worker);
/* The memory is freed after the running checks have finished. Accepts NULL. */
void logins_destroy(struct logins *logins);

/*
 * Checks a login. 0: verified within the last second, `done` is not called. -EAGAIN: `done` follows, never inside
 * this call. -EBUSY: LIMIT_LOGINS checks are waiting; or another -errno.
 */
MUST_CHECK int login_check(struct logins *logins, struct login *login);
/* Cancels a pending check: `done` is still called, with -ECANCELED, possibly inside this call. */
void login_cancel(struct login *login);

#endif
