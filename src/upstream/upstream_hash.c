/*
 * The hash of keys: of requests, and of peers in shared memory.
 */
#include "upstream/upstream_group.h"

/* FNV-1a with final mixing. Identical in every worker and after every start. */
uint64_t upstream_hash(struct str key, struct str server)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < key.length; i++)
        hash = (hash ^ (unsigned char)key.data[i]) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
    for (size_t i = 0; i < server.length; i++)
        hash = (hash ^ (unsigned char)server.data[i]) * 0x100000001b3;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
    return hash ^ hash >> 31;
}
