/* A temporary cache directory for one test, and functions that the tests of this folder share. */
#ifndef TEST_CACHE_ROOM_H
#define TEST_CACHE_ROOM_H

#include "cache/cache_file.h"

#include <check.h>
#include <stdlib.h>

struct room {
    char path[64];
    struct cache_directory directory;     /* levels 1:2 */
};

void room_open(struct room *room);
void room_close(struct room *room);
/* Returns the number of files in it, at any depth. */
unsigned room_count(const struct room *room);
/* Writes a complete file. Returns its size. */
uint64_t room_store(struct room *room, const struct cache_id *id, const char *key, const char *head, struct str body);
/* An id whose hash begins with this byte. */
struct cache_id room_id(unsigned char hash, uint64_t sequence);

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int room_run(const char *name, const TTest *const *tests, size_t count);

#endif
