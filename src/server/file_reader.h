/*
 * Reads for file bodies whose consumer needs bytes (http/body.h): immediately from the page cache, else through the
 * loop.
 */
#ifndef SERVER_FILE_READER_H
#define SERVER_FILE_READER_H

#include "http/body.h"
#include "io/loop.h"

struct file_reader {
    struct body_reader reader;
    struct loop *loop;
};

/* `loop` outlives the reader and every read in progress: reads complete in the loop. */
void file_reader_init(struct file_reader *reader, struct loop *loop);

#endif
