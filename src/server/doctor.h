/*
 * What `sluice doctor` finds out: one finding for each thing that must hold for the
 * kernel to encrypt, each with what to do where it does not. doctor.c prints; doctor_host.c asks the
 * machine; doctor_trial.c proves it by a hand-off with itself.
 */
#ifndef SERVER_DOCTOR_H
#define SERVER_DOCTOR_H

#include "base/log.h"
#include "tls/ktls.h"

enum verdict {
    VERDICT_GOOD,
    VERDICT_NOTE,                   /* not needed for kernel TLS, but worth knowing */
    VERDICT_FAULT,                  /* kernel TLS does not work because of it */
};

#define DOCTOR_FINDINGS 24

struct finding {
    const char *name;               /* stable, for --json */
    enum verdict verdict;
    char text[256];
    char advice[320];               /* empty: nothing to do */
};

struct diagnosis {
    struct finding findings[DOCTOR_FINDINGS];
    unsigned count;
    struct ktls_support support;
};

/* Adds a finding; its text is set here, its advice by doctor_advise. Past the room for findings the last one is overwritten. */
void doctor_find(struct diagnosis *diagnosis, const char *name, enum verdict verdict, const char *format, ...) PRINTF_LIKE(4, 5);
/* What to do about the last finding. */
void doctor_advise(struct diagnosis *diagnosis, const char *format, ...) PRINTF_LIKE(2, 3);

/* Kernel, module, probe by version and cipher (fills diagnosis->support), loop backend, limits. */
void doctor_examine_host(struct diagnosis *diagnosis);

/* How a hand-off with itself went. */
struct trial {
    bool handshake;                 /* it was finished */
    bool key_offered;               /* OpenSSL offered its write key, which is where our record layer begins */
    bool delivered;                 /* the client decrypted every byte right, and saw close_notify */
    unsigned path, reason;          /* enum wire_path, wire_reason */
    uint64_t bytes;
    char protocol[16], cipher[48];
    char fault[256];                /* what went wrong before that, or empty */
};

/*
 * Serves a file from memory over TLS to a client process of OpenSSL's, by the loop, the wire and the hand-off that the server uses. Forks; opens its loop
 * afterwards. `suite` is a TLS 1.3 suite.
 */
void doctor_try(const struct ktls_support *support, const char *suite, struct trial *out_trial);

#endif
