/*
 * Repeats write(2) until all bytes are written: see write_all.h.
 */
#include "base/write_all.h"

#include <errno.h>
#include <unistd.h>

int write_all(int fd, struct str bytes)
{
    while (bytes.length > 0) {
        ssize_t written = write(fd, bytes.data, bytes.length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        bytes = str_skip(bytes, (size_t)written);
    }
    return 0;
}
