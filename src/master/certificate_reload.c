/*
 * Distributes changed TLS files to the TLS contexts.
 */
#include "master/certificate_reload.h"

#include "base/limits.h"
#include "base/memory_file.h"
#include "base/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only the first fault of a change is logged. */
struct certificate_reload {
    const struct virtual_server *server;
    struct log *log;
    bool fault_logged;
};

static void log_first_fault(void *owner, const struct tls_fault *fault)
{
    struct certificate_reload *certificate_reload = owner;

    if (!certificate_reload->fault_logged)
        log_write(certificate_reload->log, LOG_ERROR,
                  "TLS files of server \"" STR_FMT
                  "\" have changed and are rejected, the previous ones stay in use: %s",
                  STR_ARG(certificate_reload->server->name), fault->text);
    certificate_reload->fault_logged = true;
}

int certificate_reload_read(const struct virtual_server *server, struct tls_files *out_files, struct log *log)
{
    struct certificate_reload certificate_reload = {server, log, false};

    return tls_files_read(&server->tls, out_files, log_first_fault, &certificate_reload) ? 0 : -EINVAL;
}

/* Stops at the first address that fails: the result is the same for all addresses. */
int certificate_reload_apply(const struct configuration *configuration, size_t number, const struct tls_files *files,
                             struct log *log)
{
    struct certificate_reload certificate_reload = {configuration->servers[number], log, false};

    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];

        for (size_t k = 0; endpoint->tls && !endpoint->tls_borrowed && k < endpoint->server_count; k++) {
            if (endpoint->servers[k] == certificate_reload.server &&
                !tls_context_reload(endpoint->tls, k, files, log, log_first_fault, &certificate_reload))
                return -EINVAL;
        }
    }
    return 0;
}

int certificate_reload_pack(const struct tls_files *files)
{
    int fd = memory_file_create("sluice-tls-files", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = fd < 0 ? -errno : write_all(fd, str_of(files->bytes, files->length));

    if (error == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        error = -errno;
    if (error == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return error;
}

/* The descriptor is shared with other readers, so its file offset must not be used. */
static int pread_all(int fd, char *bytes, size_t length)
{
    size_t done = 0;

    while (done < length) {
        ssize_t got = pread(fd, bytes + done, length - done, (off_t)done);

        if (got == 0 || (got < 0 && errno != EINTR))
            return got == 0 ? -EIO : -errno;
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

int certificate_reload_unpack(int fd, struct tls_files *out_files)
{
    struct tls_files files = {NULL, 0};
    struct stat state;
    int error;

    if (fstat(fd, &state) < 0)
        return -errno;
    if (state.st_size < 0 || state.st_size > LIMIT_CERTIFICATE_RELOAD)
        return -EFBIG;
    files.length = (size_t)state.st_size;
    files.bytes = OPENSSL_malloc(files.length + 1);
    if (!files.bytes)
        return -ENOMEM;
    error = pread_all(fd, files.bytes, files.length);
    if (error < 0)
        tls_files_finish(&files);
    else
        *out_files = files;
    return error;
}
