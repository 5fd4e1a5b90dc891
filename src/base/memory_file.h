/*
 * Files in anonymous memory.
 */
#ifndef BASE_MEMORY_FILE_H
#define BASE_MEMORY_FILE_H

#include "base/must_check.h"

/*
 * memfd_create(2) with these flags, for a file that is never executed: the sysctl vm.memfd_noexec may forbid others.
 * On older kernels the file is an ordinary one. Returns a descriptor, or -1 and sets errno.
 */
MUST_CHECK int memory_file_create(const char *name, unsigned flags);

#endif
