/*
 * memfd_create(2) for kernels before and after Linux 6.3: see memory_file.h.
 */
#include "base/memory_file.h"

#include <errno.h>
#include <sys/mman.h>

/* MFD_NOEXEC_SEAL, undefined in headers before Linux 6.3. With vm.memfd_noexec=2 only such memory can be created. */
enum { NOEXEC_SEAL = 8 };

int memory_file_create(const char *name, unsigned flags)
{
    int fd = memfd_create(name, flags | NOEXEC_SEAL);

    return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd;
}
