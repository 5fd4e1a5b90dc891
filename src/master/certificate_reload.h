/*
 * Certificates and other files of TLS that change while the server runs: read and judged by the master, who may read them, and given to
 * workers, who may not, through memory.
 */
#ifndef MASTER_CERTIFICATE_RELOAD_H
#define MASTER_CERTIFICATE_RELOAD_H

#include "site/configuration.h"

/*
 * Server number `number` of the configuration goes on with these files, at every address that it has. 0, or -EINVAL after one line that names what
 * is wrong with which file: then nothing has changed.
 */
MUST_CHECK int certificate_reload_apply(const struct configuration *configuration, size_t number, const struct tls_files *files, struct log *log);
/* The files that the server's settings name. 0, or -EINVAL after one line. */
MUST_CHECK int certificate_reload_read(const struct virtual_server *server, struct tls_files *out_files, struct log *log);

/* A descriptor of memory that holds them and can no longer be changed; or -errno. */
MUST_CHECK int certificate_reload_pack(const struct tls_files *files);
/* What such a descriptor holds. 0 or -errno. */
MUST_CHECK int certificate_reload_unpack(int fd, struct tls_files *out_files);

#endif
