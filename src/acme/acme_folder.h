/*
 * The state folder, which several machines may share:
 *   challenges/          key authorizations, readable for the workers
 *   certificates/        NAME.pem (chain and key, 0600), NAME.state (the last attempt)
 *   clients/CLIENT-HASH/ accounts and working files of a client, one folder for each authority
 *   lock                 held by the process that runs a client
 */
#ifndef ACME_ACME_FOLDER_H
#define ACME_ACME_FOLDER_H

#include "acme/acme.h"
#include "base/log.h"

/*
 * Creates the folder with its parts; `user` and `group` own what is created, unless they are -1. The folder must not be
 * a link. Returns 0, or -errno after logging the path.
 */
MUST_CHECK int acme_folder_create(const struct acme *acme, uid_t user, gid_t group, struct log *log);

/*
 * Takes the lock of the state folder. Returns a descriptor, whose closing releases it; -EAGAIN: another process or
 * machine holds it; or -errno.
 */
MUST_CHECK int acme_folder_lock(const struct acme *acme);

#endif
