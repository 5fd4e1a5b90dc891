/*
 * Blocking output to a descriptor. Not for event loops: the call waits while a pipe or a socket is full.
 */
#ifndef BASE_WRITE_ALL_H
#define BASE_WRITE_ALL_H

#include "base/must_check.h"
#include "base/str.h"

/*
 * Writes all bytes by write(2), which is repeated after a short count and after EINTR. Returns 0 or -errno; after an
 * error some bytes may have been written. -EIO: write(2) took no byte.
 */
MUST_CHECK int write_all(int fd, struct str bytes);

#endif
