/*
 * Examines the AEAD engines and chooses one for each cipher.
 */
#include "tls/aead_choice.h"

#include "base/limits.h"

#include <stdio.h>

static enum aead_state examine_cipher(struct aead *aead, enum aead_kind kind, uint8_t cipher)
{
    if (!aead_engine(kind)->built)
        return AEAD_NOT_BUILT;
    if (!aead)
        return AEAD_UNAVAILABLE;
    if (!aead->has[cipher])
        return AEAD_NO_CIPHER;
    return aead_test(aead, cipher) ? AEAD_USABLE : AEAD_WRONG;
}

enum { ROUNDS = 6 };

/* Measures the cipher with all engines, if all are usable. They alternate, so that other load affects all of them. */
static void measure_cipher(struct aead *const engines[AEAD_KINDS], uint8_t cipher, struct aead_choice *choice)
{
    for (unsigned kind = 0; kind < AEAD_KINDS; kind++) {
        if (choice->state[kind][cipher] != AEAD_USABLE)
            return;
    }
    for (unsigned i = 0; i < ROUNDS * AEAD_KINDS; i++) {
        if (!aead_measure(engines[i % AEAD_KINDS], cipher, &choice->figures[i % AEAD_KINDS][cipher]))
            return; /* a figure of 0 is never compared */
    }
}

void aead_examine(enum tls_aead setting, struct aead_choice *out_choice)
{
    unsigned kinds = setting == TLS_AEAD_OPENSSL ? 1 : AEAD_KINDS;
    struct aead *engines[AEAD_KINDS] = {NULL};
    struct aead_choice choice = {0};

    for (unsigned kind = 0; kind < kinds; kind++) {
        engines[kind] = aead_open(kind);
        for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++)
            choice.state[kind][cipher] = (uint8_t)examine_cipher(engines[kind], kind, cipher);
    }
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        choice.other_provider[cipher] = engines[AEAD_OPENSSL] && engines[AEAD_OPENSSL]->other_provider[cipher];
        if (setting == TLS_AEAD_AUTO)
            measure_cipher(engines, cipher, &choice);
    }
    for (unsigned kind = 0; kind < kinds; kind++)
        aead_close(engines[kind]);
    aead_choose(setting, &choice);
    *out_choice = choice;
}

static bool is_faster(const struct aead_figures *other, const struct aead_figures *openssl)
{
    uint64_t small, large;

    if (!other->small_ns || !other->large_ns || !openssl->small_ns || !openssl->large_ns)
        return false;
    small = (uint64_t)other->small_ns * 100 / openssl->small_ns;
    large = (uint64_t)other->large_ns * 100 / openssl->large_ns;
    return small + large < 2 * (100 - LIMIT_AEAD_GAIN) && small <= 100 + LIMIT_AEAD_NOISE &&
           large <= 100 + LIMIT_AEAD_NOISE;
}

/* One failed known-answer test excludes the engine from all ciphers. */
static bool is_usable(const struct aead_choice *choice, enum aead_kind kind, uint8_t cipher)
{
    for (unsigned i = RECORD_AES_128_GCM; i < RECORD_CIPHERS; i++) {
        if (choice->state[kind][i] == AEAD_WRONG)
            return false;
    }
    return choice->state[kind][cipher] == AEAD_USABLE;
}

/* ipsec-mb is the only other engine. OpenSSL is taken where neither is usable: handshakes need it in any case. */
static enum aead_kind choose_engine(enum tls_aead setting, const struct aead_choice *choice, uint8_t cipher)
{
    if (!is_usable(choice, AEAD_IPSEC_MB, cipher) || setting == TLS_AEAD_OPENSSL)
        return AEAD_OPENSSL;
    if (setting == TLS_AEAD_IPSEC_MB || !is_usable(choice, AEAD_OPENSSL, cipher))
        return AEAD_IPSEC_MB;
    if (choice->other_provider[cipher])
        return AEAD_OPENSSL;
    return is_faster(&choice->figures[AEAD_IPSEC_MB][cipher], &choice->figures[AEAD_OPENSSL][cipher])
               ? AEAD_IPSEC_MB
               : AEAD_OPENSSL;
}

void aead_choose(enum tls_aead setting, struct aead_choice *choice)
{
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++)
        choice->kind[cipher] = (uint8_t)choose_engine(setting, choice, cipher);
}

static void log_failed_test(const struct aead_choice *choice, enum aead_kind kind, struct log *log)
{
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        if (choice->state[kind][cipher] == AEAD_WRONG) {
            log_write(log, LOG_ALERT, "%s encrypts %s incorrectly on this machine%s", aead_engine(kind)->name,
                      record_cipher_name(cipher), kind == AEAD_OPENSSL ? "" : "; it is not used");
            return;
        }
    }
}

void aead_log(const struct aead_choice *choice, enum tls_aead setting, struct log *log)
{
    char text[256];

    for (unsigned kind = 0; kind < AEAD_KINDS; kind++)
        log_failed_test(choice, kind, log);
    if (setting == TLS_AEAD_IPSEC_MB && choice->state[AEAD_IPSEC_MB][RECORD_AES_128_GCM] == AEAD_UNAVAILABLE)
        log_write(log, LOG_WARN,
                  "ssl_aead: ipsec-mb cannot run here: the processor lacks AES-NI or PCLMULQDQ; "
                  "OpenSSL encrypts");
    aead_summary(choice, text, sizeof(text));
    log_write(log, LOG_NOTICE, "TLS records are encrypted in user space: %s", text);
}

struct str aead_describe(const struct aead_choice *choice, uint8_t cipher, char *into, size_t size)
{
    unsigned kind = choice->kind[cipher], other = kind == AEAD_OPENSSL ? AEAD_IPSEC_MB : AEAD_OPENSSL;
    const struct aead_figures *own = &choice->figures[kind][cipher],
                              *others = &choice->figures[other][cipher];

    if (own->small_ns)
        snprintf(into, size, "%s: %u ns per record of %d bytes, %u ns of %d; %s: %u ns, %u ns",
                 aead_engine(kind)->name, own->small_ns, AEAD_SMALL, own->large_ns, LIMIT_RECORD_PLAINTEXT,
                 aead_engine(other)->name, others->small_ns, others->large_ns);
    else
        snprintf(into, size, "%s", aead_engine(kind)->name);
    return str_from(into);
}

struct str aead_summary(const struct aead_choice *choice, char *into, size_t size)
{
    size_t length = 0;

    into[0] = '\0';
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS && length < size; cipher++)
        length += (size_t)snprintf(into + length, size - length, "%s%s by %s", length ? ", " : "",
                                   record_cipher_name(cipher), aead_engine(choice->kind[cipher])->name);
    return str_from(into);
}
