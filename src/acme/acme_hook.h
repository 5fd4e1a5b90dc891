/*
 * The hook: this program, called by a client to publish and remove a challenge.
 */
#ifndef ACME_ACME_HOOK_H
#define ACME_ACME_HOOK_H

/*
 * Environment variables of the hook: the path of challenges/, and the type of challenge that it accepts (http-01 by
 * default).
 */
#define ACME_CHALLENGES "SLUICE_ACME_CHALLENGES"
#define ACME_CHALLENGE_TYPE "SLUICE_ACME_CHALLENGE_TYPE"
/* argv[0] with which a client calls this program as its hook. */
#define ACME_HOOK "sluice-acme-hook"

/*
 * The hook of uacme: METHOD (begin, done, failed) TYPE IDENTIFIER TOKEN AUTHORIZATION. Returns the exit status: 0; 1:
 * the challenge is declined, or an error, which was printed on standard error.
 */
int acme_hook(int argc, char *const *argv);

#endif
