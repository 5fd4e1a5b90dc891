/*
 * Files without waiting for a disk: what is in the caches of the kernel is taken
 * at once, the rest is fetched by a helper thread. Inside io only.
 */
#ifndef IO_FILES_H
#define IO_FILES_H

#include "io/loop.h"

/*
 * OP_SENDFILE: looks at the first and last page of the next window. True: it needs no disk, and op->file.hot_until is
 * past its end. False: a disk is needed (file_warm). Costs one or two preadv2(RWF_NOWAIT) of one byte. Of a file that
 * was fetched before, every page of the window is looked at, and after LIMIT_FETCHES in vain the answer is true.
 */
bool file_probe(struct op *op);

/*
 * On a helper thread: reads the next window of an OP_SENDFILE and has the one after it read ahead. 0. The loop looks
 * again (file_probe), since other programs may need the memory meanwhile.
 */
int file_warm(struct op *op);

#endif
