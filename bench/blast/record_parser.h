/*
 * Parser of TLS record headers. The payload is not decrypted: the plaintext length follows from the record length. The
 * caller passes received bytes to record_parser_feed, and the number of bytes that the kernel discarded to
 * record_parser_skip. No I/O.
 */
#ifndef BLAST_RECORD_PARSER_H
#define BLAST_RECORD_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_HEADER_SIZE = 5, RECORD_SIZE_MAX = 16384 + 256 };

struct record_parser {
    uint32_t overhead;              /* bytes of a record in addition to its plaintext, without the header */
    uint32_t remaining;             /* bytes of the current record that were not received yet */
    uint32_t plaintext_length;      /* of the current record; counted at its end */
    unsigned header_received;
    uint8_t header[RECORD_HEADER_SIZE];
};

/*
 * Parses received bytes. Adds the plaintext length of each completed record to *plain. Returns false if a record is
 * not application data.
 */
bool record_parser_feed(struct record_parser *parser, const uint8_t *bytes, size_t length, uint64_t *plain);

/* Counts discarded bytes of the current record; `length` is at most `remaining`. */
void record_parser_skip(struct record_parser *parser, size_t length, uint64_t *plain);

/* True between two records. */
bool record_parser_is_at_boundary(const struct record_parser *parser);

#endif
