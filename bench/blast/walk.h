/*
 * Steps over TLS records without decrypting them: only the headers are parsed, and the length of each record gives
 * its plaintext length. Bytes are passed to walk_over, or to walk_skip if the kernel discards them. Without I/O.
 */
#ifndef BLAST_WALK_H
#define BLAST_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WALK_HEADER = 5, WALK_RECORD_MAX = 16384 + 256 };

struct walk {
    uint32_t overhead;              /* bytes of a record in addition to its plaintext, without the header */
    uint32_t record_left;           /* remaining bytes of the current record */
    uint32_t record_plain;          /* its plaintext length, counted at the end of the record */
    unsigned header_have;
    uint8_t header[WALK_HEADER];
};

/*
 * Processes bytes that were read. Adds the plaintext of completed records to *plain; returns false at a record that
 * is not application data.
 */
bool walk_over(struct walk *walk, const uint8_t *bytes, size_t length, uint64_t *plain);

/* Skips unread bytes of the current record; at most record_left. */
void walk_skip(struct walk *walk, size_t length, uint64_t *plain);

/* True between two records. */
bool walk_is_between(const struct walk *walk);

#endif
