/*
 * The AEAD engine of each cipher: every engine is tested by known answers, measured where there is a choice, and
 * an engine other than OpenSSL is selected if it saves more than LIMIT_AEAD_GAIN percent. Done in the master.
 */
#ifndef TLS_AEAD_CHOICE_H
#define TLS_AEAD_CHOICE_H

#include "base/log.h"
#include "tls/aead.h"

/* `ssl_aead`. */
enum tls_aead { TLS_AEAD_AUTO, TLS_AEAD_OPENSSL, TLS_AEAD_IPSEC_MB };

/* Whether an engine can seal with a cipher, and the reason if it cannot. */
enum aead_state {
    AEAD_UNTESTED,                  /* excluded by ssl_aead: openssl */
    AEAD_USABLE,
    AEAD_NOT_BUILT,
    AEAD_UNAVAILABLE,               /* the processor lacks its instructions, or memory is short */
    AEAD_NO_CIPHER,                 /* the engine does not implement the cipher */
    AEAD_WRONG,                     /* a known-answer test failed */
};

/* Duration of sealing a record, the shortest of several measurements; 0: not measured. */
struct aead_figures {
    uint32_t small_ns; /* a record of AEAD_SMALL bytes */
    uint32_t large_ns; /* a full record */
};

#define AEAD_SMALL 1200

/* Holds no pointers: the master shares it with the workers. */
struct aead_choice {
    uint8_t kind[RECORD_CIPHERS];               /* enum aead_kind: the chosen engine */
    bool other_provider[RECORD_CIPHERS];        /* OpenSSL was configured to use another provider, for instance FIPS */
    uint8_t state[AEAD_KINDS][RECORD_CIPHERS];  /* enum aead_state */
    struct aead_figures figures[AEAD_KINDS][RECORD_CIPHERS];
};

/*
 * Tests each engine that `setting` permits, measures the ciphers that several of them serve (a few milliseconds; only
 * if `setting` is auto), and chooses.
 */
void aead_examine(enum tls_aead setting, struct aead_choice *out_choice);
/* True if the engine computes the known answers of the cipher, which it has. */
MUST_CHECK bool aead_test(struct aead *aead, uint8_t cipher);
/*
 * Measures an engine that has the cipher for about 150 us, and lowers the figures in `best` (0: none yet): other
 * processes can only lengthen a measurement. False: out of memory.
 */
MUST_CHECK bool aead_measure(struct aead *aead, uint8_t cipher, struct aead_figures *best);
/*
 * Sets `kind` by states and figures. An engine with a wrong answer is not used for any cipher. TLS_AEAD_AUTO selects
 * an engine other than OpenSSL if it is usable, saves more than LIMIT_AEAD_GAIN percent as the mean of both sizes, and
 * is slower by at most LIMIT_AEAD_NOISE percent with either. It never replaces a provider other than OpenSSL's default.
 */
void aead_choose(enum tls_aead setting, struct aead_choice *choice);

/* "ipsec-mb: 312 ns per record of 1200 bytes, 3861 ns of 16384; openssl: 469 ns, 3968 ns", or the name alone. */
struct str aead_describe(const struct aead_choice *choice, uint8_t cipher, char *into, size_t size);
/*
 * One line about every cipher: "TLS records: AES-128-GCM by ipsec-mb, ...". The text is truncated to fit.
 */
struct str aead_summary(const struct aead_choice *choice, char *into, size_t size);
/*
 * Logs the choice, and before it one line for each engine that computed a wrong answer, or that cannot run although
 * `setting` names it.
 */
void aead_log(const struct aead_choice *choice, enum tls_aead setting, struct log *log);

#endif
