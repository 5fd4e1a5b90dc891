/*
 * What `sluice doctor` finds out: one finding for each thing that must hold for the
 * kernel to encrypt, each with what to do where it does not. doctor.c prints; doctor_host.c, doctor_module.c and
 * doctor_limits.c ask the machine; doctor_self_test.c proves it by hand-offs with itself, doctor_report.c says what came of them.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include "base/log.h"
#include "command/options.h"
#include "tls/ktls.h"

enum verdict {
    VERDICT_GOOD,
    VERDICT_NOTE,                   /* not needed for kernel TLS, but worth knowing */
    VERDICT_FAULT,                  /* kernel TLS does not work because of it */
};

#define DOCTOR_FINDINGS 48

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

/* Everything below but the self-tests; fills diagnosis->support by asking the kernel. */
void doctor_examine_host(struct diagnosis *diagnosis);

/* Whether a device encrypts TLS by itself (tls-hw-tx-offload). */
struct offload {
    bool available;                 /* it can be switched on */
    bool active;
};

/* The machine as its files tell it; tests bring a folder of their own, and a network device of their own. */
struct host {
    const char *root;               /* in front of /proc, /sys, /lib and /boot; "" is the real one */
    int (*offload)(const char *device, struct offload *out_offload);
};
extern const struct host host_here;

/* 0 or -errno. */
int doctor_query_device(const char *device, struct offload *out_offload);

/* What follows `start` in the first line of a file that begins with it. False, and `into` empty, where there is none. */
bool host_line(const struct host *host, const char *path, const char *start, char *into, size_t size);
/* The number at the beginning of a file, or `fallback`. */
long long host_number(const struct host *host, const char *path, long long fallback);
bool host_has(const struct host *host, const char *path, int access_mode);

/* Kernel, tls module, and whether the kernel would load that by itself; for what diagnosis->support says. */
void doctor_examine_module(struct diagnosis *diagnosis, const struct host *host);
/* How opening a backend of the loop went: 0 or -errno. */
void doctor_report_loop(struct diagnosis *diagnosis, const struct host *host, const char *backend, int error);
/* Descriptors and locked memory, send buffers, network devices. */
void doctor_examine_limits(struct diagnosis *diagnosis, const struct host *host);
void doctor_examine_buffers(struct diagnosis *diagnosis, const struct host *host);
void doctor_examine_devices(struct diagnosis *diagnosis, const struct host *host);

/* How a hand-off with itself went. */
struct self_test {
    bool handshake;                 /* it was finished */
    bool key_offered;               /* OpenSSL offered its write key, which is where our record layer begins */
    bool delivered;                 /* the client decrypted every byte right, and saw close_notify */
    unsigned path, reason;          /* enum wire_path, wire_reason */
    uint64_t bytes;
    char protocol[16], cipher[48];
    char fault[256];                /* what went wrong before that, or empty */
};

/* What is tried, the server's first choice first; ends with a row without a name. */
struct suite {
    const char *name;               /* for people */
    unsigned version;               /* 0: TLS 1.2, 1: TLS 1.3; as in struct ktls_support */
    enum record_cipher cipher;
    const char *openssl;            /* as SSL_CTX_set_ciphersuites or SSL_CTX_set_cipher_list takes it */
};
extern const struct suite doctor_suites[];

/*
 * Serves a file from memory over TLS to a client process of OpenSSL's, by the loop, the wire and the hand-off that the server uses. Forks; opens its loop
 * afterwards.
 */
void doctor_self_test(const struct ktls_support *support, const struct suite *suite, struct self_test *out_self_test);

/* doctor_report.c: true where nothing speaks against kernel TLS. */

/* Of the first self_test: OpenSSL's build, the handshake, and whether the kernel encrypted. */
bool doctor_report_first(struct diagnosis *diagnosis, const struct self_test *self_test);
/* Of each suite; `self_test` is NULL where the kernel had refused it already. */
bool doctor_report_suite(struct diagnosis *diagnosis, const struct suite *suite, const struct self_test *self_test);

/* The command. Exit status 0 where the kernel encrypted a transfer that arrived whole. */
int command_doctor(const struct options *options);

#endif
