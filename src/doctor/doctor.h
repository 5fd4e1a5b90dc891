/*
 * The findings of `sluice doctor`: one for each condition of kernel TLS, with advice if it is not met. doctor.c
 * prints; doctor_host.c, doctor_module.c and doctor_limits.c examine the host; doctor_self_test.c transfers a file
 * with kernel TLS, and doctor_report.c reports the results.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include "acme/acme.h"
#include "base/log.h"
#include "command/options.h"
#include "tls/aead_choice.h"
#include "tls/ktls.h"
#include "tls/ktls_choice.h"
#include "tls/ktls_device.h"

enum verdict {
    VERDICT_GOOD,
    VERDICT_NOTE,                   /* not needed for kernel TLS, but useful */
    VERDICT_FAULT,                  /* prevents kernel TLS */
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

/* Adds a finding; doctor_advise adds its advice. If the table is full, the last finding is overwritten. */
void doctor_add(struct diagnosis *diagnosis, const char *name, enum verdict verdict, const char *format,
                ...) PRINTF_LIKE(4, 5);
/* Sets the advice of the last finding. */
void doctor_advise(struct diagnosis *diagnosis, const char *format, ...) PRINTF_LIKE(2, 3);

/* Runs all examinations below except self-tests and certificates; sets diagnosis->support by probing the kernel. */
void doctor_examine_host(struct diagnosis *diagnosis);

/* The files and devices of a host. Unit tests supply a directory and a network device of their own. */
struct host {
    const char *root;               /* prefix of /proc, /sys, /lib and /boot; "" is the real host */
    int (*offload)(const char *device, struct ktls_device *out_device);
};
extern const struct host host_here;

/*
 * Copies the text after `start` in the first line that begins with it. Returns false, with `into` empty, if there is
 * none.
 */
bool host_line(const struct host *host, const char *path, const char *start, char *into, size_t size);
/* Returns the number at the beginning of a file, or `default_value`. */
long long host_number(const struct host *host, const char *path, long long default_value);
/* True if access(2) permits `access_mode` for the file. */
bool host_has(const struct host *host, const char *path, int access_mode);

/*
 * Examines kernel and tls module, and whether the kernel would load the module on demand, given diagnosis->support.
 */
void doctor_examine_module(struct diagnosis *diagnosis, const struct host *host);
/* Reports the result of opening a backend of the loop: 0 or -errno. */
void doctor_report_loop(struct diagnosis *diagnosis, const struct host *host, const char *backend, int error);
/* Reports the library that encrypts in user space, for each cipher. */
void doctor_report_aead(struct diagnosis *diagnosis, const struct aead_choice *choice);
/* Reports for each cipher that the kernel supports whether kernel or user space encrypts large bodies. */
void doctor_report_choice(struct diagnosis *diagnosis, const struct ktls_choice *choice);
/* Reports a part of the sandbox; `missing`: the reason why it is not available, or NULL. */
void doctor_report_sandbox(struct diagnosis *diagnosis, const char *part, const char *missing);
/* Examine descriptors and locked memory, send buffers, network devices. */
void doctor_examine_limits(struct diagnosis *diagnosis, const struct host *host);
void doctor_examine_buffers(struct diagnosis *diagnosis, const struct host *host);
void doctor_examine_devices(struct diagnosis *diagnosis, const struct host *host);

/* The result of one self-test. */
struct self_test {
    bool handshake;                 /* the handshake completed */
    /* OpenSSL passed its write key, so that the record layer of sluice could take over. */
    bool key_offered;
    bool delivered;                 /* the client decrypted every byte correctly and received close_notify */
    unsigned path, reason;          /* enum wire_path, wire_reason */
    uint64_t bytes;
    char protocol[16], cipher[48];
    char fault[256];                /* the error that ended the test early, or empty */
};

/* The tested suites, the server's first preference first; terminated by a row without a name. */
struct suite {
    const char *name;               /* displayed */
    unsigned version;               /* 0: TLS 1.2, 1: TLS 1.3; as in struct ktls_support */
    enum record_cipher cipher;
    const char *openssl;            /* argument of SSL_CTX_set_ciphersuites or SSL_CTX_set_cipher_list */
};
extern const struct suite doctor_suites[];

/*
 * Serves a file from memory over TLS to an OpenSSL client process, with the server's own loop, wire and kernel TLS
 * code. Forks first, and opens its loop afterwards.
 */
void doctor_self_test(const struct ktls_support *support, const struct suite *suite, struct self_test *out_self_test);

/* doctor_report.c */

/*
 * Reports the first self-test: OpenSSL's build, the handshake, and whether the kernel encrypted. Returns true if the
 * kernel encrypted a complete transfer.
 */
bool doctor_report_first(struct diagnosis *diagnosis, const struct self_test *self_test);
/*
 * Reports one suite; `self_test` is NULL if the kernel does not support it. Returns false if the handshake succeeded
 * but the file was not delivered completely.
 */
bool doctor_report_suite(struct diagnosis *diagnosis, const struct suite *suite, const struct self_test *self_test);

/*
 * Reports the certificates by ACME at `now_s` (seconds since the epoch), from the files of the state folder. They do
 * not affect the verdict on kernel TLS.
 */
void doctor_examine_acme(struct diagnosis *diagnosis, const struct acme *acme, int64_t now_s);

/* Runs all examinations and self-tests, except that of certificates. Returns true if kernel TLS works. */
bool doctor_examine_machine(struct diagnosis *diagnosis);

/* Runs the command. Exit status 0 if kernel TLS encrypted a complete transfer. */
int command_doctor(const struct options *options);

#endif
