/*
 * File access that does not block the loop: cached pages are used at once, helper threads read the rest. Private to
 * io/.
 */
#ifndef IO_FILES_H
#define IO_FILES_H

#include "io/loop.h"

/*
 * OP_SENDFILE: probes the first and the last page of the next window by preadv2(RWF_NOWAIT) of one byte each, and all
 * pages by cachestat(2) where it exists. True: the window is cached, and op->file.cached_until is the offset of its
 * end. False: a disk read is needed (file_read_window). For a file that a helper thread has read before, every page is
 * probed, and after LIMIT_FETCHES reads the result is true.
 */
bool file_probe(struct op *op);

/*
 * On a helper thread: reads the next window of an OP_SENDFILE and starts readahead of the one after it. Returns 0.
 * The loop probes again (file_probe), since the pages may have been evicted meanwhile.
 */
int file_read_window(struct op *op);

#endif
