/* A temporary cache directory for one test, and functions that the tests of this folder share. */
#ifndef TEST_CACHE_FIXTURE_H
#define TEST_CACHE_FIXTURE_H

#include "cache/cache_file.h"

#include <check.h>
#include <stdlib.h>

struct cache_fixture {
    char path[64];
    struct cache_directory directory;     /* levels 1:2 */
};

void cache_fixture_open(struct cache_fixture *fixture);
void cache_fixture_close(struct cache_fixture *fixture);
/* Returns the number of files in it, at any depth. */
unsigned cache_fixture_count(const struct cache_fixture *fixture);
/* Writes a complete file. Returns its size. */
uint64_t cache_fixture_store(struct cache_fixture *fixture, const struct cache_id *id, const char *key,
                             const char *head, struct str body);
/* An id whose hash begins with this byte. */
struct cache_id cache_fixture_id(unsigned char hash, uint64_t sequence);

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int cache_fixture_run(const char *name, const TTest *const *tests, size_t count);

#endif
