/*
 * A worker's logins: those that a helper thread looks at, those that wait for one, and the few that were found good lately.
 */
#ifndef AUTH_BASIC_LOGINS_H
#define AUTH_BASIC_LOGINS_H

#include "password_file.h"

#include "server/module.h"

#define LOGIN_KEY 32

struct logins;

/* One question, embedded in its owner, who outlives `done`. */
struct login {
    struct password_check question; /* `path`, `user` and `password` are the owner's */
    void (*done)(struct login *login, int error); /* what password_verify said; -ECANCELED after login_cancel */
    struct logins *logins;
    struct list link;               /* in `waiting` */
    struct op op;
    unsigned char key[LOGIN_KEY];
    bool cancelled;
};

/* NULL when out of memory, or without random bytes. */
struct logins *logins_create(struct worker *worker);
/* What a helper thread still looks at ends later, and then the rest is freed. Accepts NULL. */
void logins_destroy(struct logins *logins);

/*
 * 0: it was found good within the last second, and `done` is not called. -EAGAIN: `done` follows, never inside this call. -EBUSY: too many
 * wait (LIMIT_LOGINS); or another -errno.
 */
MUST_CHECK int login_check(struct logins *logins, struct login *login);
/* Nobody waits for it; `done` follows all the same, perhaps inside this call. */
void login_cancel(struct login *login);

#endif
