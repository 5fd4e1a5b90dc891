/*
 * Binary input: PROXY protocol headers of version 2 and ClientHellos, each with a part whose length depends on n.
 * Each function appends to `into`; the bytes are the same in every call with the same n.
 */
#ifndef TEST_COMPLEXITY_BINARY_H
#define TEST_COMPLEXITY_BINARY_H

#include "base/buffer.h"

/* A header with n empty TLVs, followed by an HTTP request. */
void make_tlvs(struct buffer *into, size_t n);

/* ClientHellos in one record, each followed by an empty line, to which the upstream server responds. */
void make_hello_extensions(struct buffer *into, size_t n); /* n unknown extensions without content */
void make_hello_name(struct buffer *into, size_t n);       /* SNI with a name of n bytes */
void make_hello_names(struct buffer *into, size_t n);      /* SNI with n entries of an unknown type */
void make_hello_alpn(struct buffer *into, size_t n);       /* n ALPN names of one byte */
void make_hello_versions(struct buffer *into, size_t n);   /* n supported versions */
void make_hello_ciphers(struct buffer *into, size_t n);    /* n cipher suites */
/* A ClientHello in records of one byte, with an unknown extension of n bytes. */
void make_hello_records(struct buffer *into, size_t n);

#endif
