/*
 * The decision between kernel and user space, and its text. Calls no clock and no kernel: see ktls_measure.c.
 */
#include "tls/ktls_choice.h"

#include <stdio.h>

const uint32_t ktls_sizes[KTLS_SIZES] = {16 << 10, 64 << 10, 256 << 10, 1 << 20};

static bool has_both(const struct ktls_figures *figures, unsigned size)
{
    return figures->kernel_ns[size] && figures->user_ns[size];
}

static uint64_t choose_size(const struct ktls_figures *figures)
{
    uint64_t from = KTLS_NEVER;
    bool measured = false;

    for (unsigned size = KTLS_SIZES; size-- > 0;) {
        if (!has_both(figures, size))
            continue;
        measured = true;
        if (figures->kernel_ns[size] >= figures->user_ns[size])
            return from;
        from = ktls_sizes[size];
    }
    return measured ? from : 0;
}

void ktls_choose(struct ktls_choice *choice)
{
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++)
        choice->threshold[cipher] = choice->offload ? 0 : choose_size(&choice->figures[cipher]);
}

bool ktls_figures_per_kib(const struct ktls_figures *figures, uint32_t *out_kernel_ns, uint32_t *out_user_ns)
{
    *out_kernel_ns = *out_user_ns = 0;
    for (unsigned size = KTLS_SIZES; size-- > 0;) {
        if (!has_both(figures, size))
            continue;
        *out_kernel_ns = figures->kernel_ns[size] / (ktls_sizes[size] >> 10);
        *out_user_ns = figures->user_ns[size] / (ktls_sizes[size] >> 10);
        return true;
    }
    return false;
}

static void describe_choice(const struct ktls_choice *choice, uint8_t cipher, char *into, size_t size)
{
    uint64_t from = choice->threshold[cipher];

    if (choice->offload)
        snprintf(into, size, "the NIC encrypts");
    else if (from == KTLS_NEVER)
        snprintf(into, size, "user space encrypts");
    else if (from <= ktls_sizes[0])
        snprintf(into, size, "the kernel encrypts");
    else
        snprintf(into, size, "the kernel encrypts bodies from %llu KiB on", (unsigned long long)(from >> 10));
}

struct str ktls_choice_describe(const struct ktls_choice *choice, uint8_t cipher, char *into, size_t size)
{
    uint32_t kernel_ns, user_ns;
    char decision[64];

    describe_choice(choice, cipher, decision, sizeof(decision));
    if (ktls_figures_per_kib(&choice->figures[cipher], &kernel_ns, &user_ns))
        snprintf(into, size, "the kernel takes %u ns of CPU time per KiB, user space %u: %s", kernel_ns, user_ns,
                 decision);
    else
        snprintf(into, size, "not measured: %s", decision);
    return str_from(into);
}
