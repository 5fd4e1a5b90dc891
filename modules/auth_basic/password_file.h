/*
 * A file of users and their passwords, as htpasswd writes it: one line each, "name:hash". All of this blocks, and is for
 * helper threads.
 */
#ifndef AUTH_BASIC_PASSWORD_FILE_H
#define AUTH_BASIC_PASSWORD_FILE_H

#include "base/must_check.h"
#include "base/str.h"

#include <stdint.h>

/* Which file it was, and as of when: another, where anything of it has changed. */
struct password_file_state {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
};

enum password_verdict {
    PASSWORD_BAD,                   /* also of a question that nobody has answered */
    PASSWORD_GOOD,
    PASSWORD_NOBODY,                /* there is no such user */
    PASSWORD_WEAK,                  /* the user's hash is of a kind that is not taken: `line`, `scheme` */
    PASSWORD_COSTLY,                /* or would take longer than anyone waits: `line` */
};

struct password_check {
    const char *path;
    struct str user;
    const char *password;           /* ends with a NUL, and has no other */
    bool known;                     /* it was found good when the file was as `state` says: where it still is, nothing is hashed */
    struct password_file_state state; /* afterwards: as it is now */
    enum password_verdict verdict;
    unsigned line;
    char scheme[16];
};

/*
 * Answers it. Whoever asks for nobody, or for one who cannot log in, waits as long as for the first user of the file. 0, or -errno: the file cannot be read
 * (-EFBIG past LIMIT_PASSWORD_FILE).
 */
MUST_CHECK int password_verify(struct password_check *question);

/* The first line whose hash is not taken, its user and its kind: 1; 0 where there is none, or -errno as above. For the loader. */
MUST_CHECK int password_file_check(const char *path, unsigned *out_line, char *user, size_t user_size, char *scheme, size_t scheme_size);

#endif
