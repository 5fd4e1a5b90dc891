/*
 * Decides for each cipher whether the kernel or user space encrypts large bodies (`ssl_ktls: auto`): by the CPU time
 * that ktls_measure.c measured for both, or by the NIC, which encrypts without the CPU.
 */
#ifndef TLS_KTLS_CHOICE_H
#define TLS_KTLS_CHOICE_H

#include "tls/record.h"

#include <stdbool.h>

enum { KTLS_SIZES = 4 };
/* Lengths of the measured bodies, ascending. */
extern const uint32_t ktls_sizes[KTLS_SIZES];

/* CPU time of sending one body of each size, including enabling kTLS; 0: not measured. */
struct ktls_figures {
    uint32_t kernel_ns[KTLS_SIZES];
    uint32_t user_ns[KTLS_SIZES];
};

#define KTLS_NEVER UINT64_MAX

/* Holds no pointers: the master shares it with the workers. Zeroed: the kernel encrypts bodies of every size. */
struct ktls_choice {
    bool offload;                       /* a NIC encrypts (tls-hw-tx-offload) */
    uint64_t threshold[RECORD_CIPHERS]; /* body size in bytes from which the kernel encrypts; KTLS_NEVER: none */
    struct ktls_figures figures[RECORD_CIPHERS];
};

/*
 * Sets `threshold` by the other members: the smallest measured size from which on the kernel takes less time at each
 * measured size; 0 with offload, or if no size has both figures.
 */
void ktls_choose(struct ktls_choice *choice);

/* True if the kernel encrypts bodies of `length` bytes. */
static inline bool ktls_choice_is_kernel(const struct ktls_choice *choice, uint8_t cipher, uint64_t length)
{
    return choice->threshold[cipher] != KTLS_NEVER && length >= choice->threshold[cipher];
}

/* CPU time in ns per KiB at the largest size that has both figures. False, with zeros, if none has. */
bool ktls_figures_per_kib(const struct ktls_figures *figures, uint32_t *out_kernel_ns, uint32_t *out_user_ns);
/*
 * "the kernel takes 131 ns of CPU time per KiB, user space 95: user space encrypts", or "not measured: the kernel
 * encrypts".
 */
struct str ktls_choice_describe(const struct ktls_choice *choice, uint8_t cipher, char *into, size_t size);

#endif
