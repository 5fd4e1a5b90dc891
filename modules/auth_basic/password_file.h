/*
 * A file of users and password hashes, as written by htpasswd: one line each, "name:hash". The functions block; call
 * them on helper threads.
 */
#ifndef AUTH_BASIC_PASSWORD_FILE_H
#define AUTH_BASIC_PASSWORD_FILE_H

#include "base/must_check.h"
#include "base/str.h"

#include <stdint.h>

/* Identity and version of a file: differs as soon as any attribute has changed. */
struct password_file_state {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
};

enum password_result {
    PASSWORD_BAD,                   /* also the initial value, before the check */
    PASSWORD_GOOD,
    PASSWORD_UNKNOWN_USER,          /* no such user */
    PASSWORD_WEAK,                  /* the scheme of the user's hash is not accepted: `line`, `scheme` */
    PASSWORD_COSTLY,                /* the user's hash exceeds the cost limits: `line` */
};

struct password_check {
    const char *path;
    struct str user;
    const char *password;               /* ends with a NUL, and contains no other */
    bool known;                         /* verified for `state`: if the file is unchanged, no hash is computed */
    struct password_file_state state;   /* set to the current state of the file */
    enum password_result result;
    unsigned line;
    char scheme[16];
};

/*
 * Checks user and password, and sets `result`. An unknown user, or one that cannot log in, takes as long as the
 * first usable hash of the file. 0, or -errno if the file cannot be read (-EFBIG beyond LIMIT_PASSWORD_FILE).
 */
MUST_CHECK int password_verify(struct password_check *check);

/*
 * For the loader: finds the first line with a hash that is not accepted. 1 with its number, user and scheme; 0:
 * none; or -errno as above.
 */
MUST_CHECK int password_file_check(const char *path, unsigned *out_line, char *user, size_t user_size, char *scheme,
                                   size_t scheme_size);

#endif
