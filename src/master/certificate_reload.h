/*
 * Certificates and other TLS files that change while the server runs: the master, which has permission to read them,
 * reads and validates them, and passes them through memory to the workers, which lack that permission.
 */
#ifndef MASTER_CERTIFICATE_RELOAD_H
#define MASTER_CERTIFICATE_RELOAD_H

#include "site/configuration.h"

/*
 * Applies the files to server `number` of the configuration at each of its addresses. Returns 0, or -EINVAL after
 * one log line that names the fault and the file: then nothing has changed.
 */
MUST_CHECK int certificate_reload_apply(const struct configuration *configuration, size_t number,
                                        const struct tls_files *files, struct log *log);
/*
 * Reads the files named in the server's settings; the caller frees them by tls_files_finish. Returns 0, or -EINVAL
 * after one log line.
 */
MUST_CHECK int certificate_reload_read(const struct virtual_server *server, struct tls_files *out_files,
                                       struct log *log);

/* Returns a descriptor of sealed memory that holds the files, or -errno. */
MUST_CHECK int certificate_reload_pack(const struct tls_files *files);
/* Reads the files from such a descriptor; the caller frees them by tls_files_finish. Returns 0 or -errno. */
MUST_CHECK int certificate_reload_unpack(int fd, struct tls_files *out_files);

#endif
