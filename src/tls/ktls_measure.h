/*
 * Measures whether the kernel or user space needs less CPU time to encrypt and send file bodies.
 */
#ifndef TLS_KTLS_MEASURE_H
#define TLS_KTLS_MEASURE_H

#include "tls/ktls.h"
#include "tls/ktls_choice.h"

struct aead_choice;

/*
 * For each cipher of `support`, sends bodies of each size over loopback connections: by sendfile through kTLS, and by
 * read, seal and send with the engines of `aead`. Writes the least CPU time of several runs. Takes at most
 * LIMIT_KTLS_MEASURE_MS for all ciphers, plus the smallest run; figures for which there was no time, or whose system
 * calls failed, are 0.
 */
void ktls_measure(const struct ktls_calls *calls, const struct ktls_support *support, const struct aead_choice *aead,
                  struct ktls_figures out_figures[RECORD_CIPHERS]);
/* Measures, queries the network devices, and chooses. */
void ktls_examine(const struct ktls_calls *calls, const struct ktls_support *support, const struct aead_choice *aead,
                  struct ktls_choice *out_choice);

#endif
