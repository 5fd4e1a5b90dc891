/*
 * Reads for file bodies of which somebody wants bytes (http/body.h): at once what the page cache holds, the rest by the loop.
 */
#ifndef SERVER_FILE_READER_H
#define SERVER_FILE_READER_H

#include "http/body.h"
#include "io/loop.h"

struct file_reader {
    struct body_reader reader;
    struct loop *loop;
};

/* `loop` outlives it; so does every read that is under way: it ends in the loop. */
void file_reader_init(struct file_reader *reader, struct loop *loop);

#endif
