/*
 * Walks over TLS records without opening them: only their headers are looked at, and the plaintext of each is known
 * from its length. Bytes may be walked over, or be skipped where the kernel drops them. Pure: no descriptor in here.
 */
#ifndef BLAST_WALK_H
#define BLAST_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WALK_HEADER = 5, WALK_RECORD_MAX = 16384 + 256 };

struct walk {
    uint32_t overhead;              /* what a record holds beside its plaintext, header not counted */
    uint32_t record_left;           /* bytes of the record that is going by */
    uint32_t record_plain;          /* its plaintext: counted when the record has gone by */
    unsigned header_have;
    uint8_t header[WALK_HEADER];
};

/* Goes over bytes that were read. Adds the plaintext of records that are over to *plain; false: no record of
   application data. */
bool walk_over(struct walk *walk, const uint8_t *bytes, size_t length, uint64_t *plain);

/* Goes over bytes of the present record that nobody read; at most record_left. */
void walk_skip(struct walk *walk, size_t length, uint64_t *plain);

/* Between two records. */
bool walk_is_between(const struct walk *walk);

#endif
