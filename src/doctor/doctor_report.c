/*
 * Reports the results of the self-tests: OpenSSL's build, the first transfer, and each protocol and cipher.
 */
#include "doctor/doctor.h"

#include "build_options.h"
#include "wire/wire.h"

#include <openssl/crypto.h>

static void report_openssl(struct diagnosis *diagnosis, const struct self_test *self_test)
{
    doctor_add(diagnosis, "openssl", VERDICT_GOOD, "built with %s, running with %s", OPENSSL_VERSION_TEXT,
               OpenSSL_version(OPENSSL_VERSION));
    if (!self_test->handshake) {
        doctor_add(diagnosis, "handshake", VERDICT_FAULT, "the TLS handshake of the self-test failed: %s",
                   self_test->fault);
        doctor_advise(diagnosis,
                      "kernel TLS cannot be tested without it; a system-wide openssl.cnf may be too strict, or "
                      "the loopback interface (127.0.0.1) may be down");
    } else if (self_test->key_offered) {
        doctor_add(diagnosis, "openssl_ktls", VERDICT_GOOD, "OpenSSL offers its write key (%s, %s)",
                   self_test->protocol, self_test->cipher);
    } else {
        doctor_add(diagnosis, "openssl_ktls", VERDICT_FAULT, "OpenSSL offers no write key (%s, %s)",
                   self_test->protocol, self_test->cipher);
        doctor_advise(diagnosis,
                      "this libssl was built without kTLS: it needs the configure option enable-ktls, which "
                      "Debian and Ubuntu set");
    }
}

bool doctor_report_first(struct diagnosis *diagnosis, const struct self_test *self_test)
{
    report_openssl(diagnosis, self_test);
    if (!self_test->handshake)
        return false;
    if (!self_test->delivered) {
        doctor_add(diagnosis, "transfer", VERDICT_FAULT, "a file sent over loopback did not arrive completely: %s",
                   self_test->fault);
        doctor_advise(diagnosis, "run with ssl_ktls: off, and report this bug");
        return false;
    }
    if (self_test->path == PATH_KTLS_SENDFILE) {
        doctor_add(diagnosis, "transfer", VERDICT_GOOD,
                   "the kernel encrypted %llu bytes by sendfile, and the client decrypted all of them correctly",
                   (unsigned long long)self_test->bytes);
        return true;
    }
    doctor_add(diagnosis, "transfer", VERDICT_FAULT,
               "%llu bytes arrived intact, but encrypted in user space (tls_path %s, tls_path_reason %s)",
               (unsigned long long)self_test->bytes, wire_path_name((enum wire_path)self_test->path),
               wire_reason_name(self_test->reason));
    doctor_advise(diagnosis, "the server works, but sending files takes more CPU time");
    return false;
}

static void advise_reason(struct diagnosis *diagnosis, enum ktls_reason reason)
{
    switch (reason) {
    case KTLS_NOT_BUILT:
        doctor_advise(diagnosis,
                      "rebuild sluice with linux/tls.h installed (linux-libc-dev) and -Dktls=enabled");
        break;
    case KTLS_NO_PERMISSION:
        doctor_advise(
            diagnosis,
            "a sandbox forbids it: allow setsockopt TCP_ULP and SOL_TLS in its seccomp or LSM policy");
        break;
    case KTLS_CIPHER:
        doctor_advise(diagnosis, "this kernel lacks the cipher or the version: TLS 1.3 and AES-256 require Linux "
                                 "5.1, ChaCha20-Poly1305 5.11");
        break;
    case KTLS_ULP_REFUSED:
        doctor_advise(
            diagnosis,
            "another protocol is attached to TCP sockets here (MPTCP, a BPF sockmap), loopback is down, or "
            "memory is short");
        break;
    case KTLS_OK:
    case KTLS_OFF:
    case KTLS_NO_MODULE:
    case KTLS_TX_REFUSED:
    case KTLS_NO_KEY:
    case KTLS_REASONS:
        break;
    }
}

/* Reports a suite that the kernel does not support: a fault for the server's first preference, else a note. */
static void report_unsupported(struct diagnosis *diagnosis, const struct suite *suite)
{
    enum ktls_reason reason = diagnosis->support.reason[suite->version][suite->cipher];
    bool first = suite == doctor_suites;
    const struct suite *before = first ? NULL : suite - 1;

    doctor_add(diagnosis, "cipher", first ? VERDICT_FAULT : VERDICT_NOTE, "%s: %s", suite->name,
               ktls_reason_name(reason));
    if (!before || diagnosis->support.reason[before->version][before->cipher] != reason) /* advice once per reason */
        advise_reason(diagnosis, reason);
}

bool doctor_report_suite(struct diagnosis *diagnosis, const struct suite *suite, const struct self_test *self_test)
{
    if (!self_test) {
        report_unsupported(diagnosis, suite);
        return true;
    }
    if (!self_test->handshake) {
        doctor_add(diagnosis, "cipher", VERDICT_NOTE,
                   "%s: the kernel accepts the key, but the handshake of OpenSSL fails: %s", suite->name,
                   self_test->fault);
        doctor_advise(
            diagnosis,
            "a system-wide openssl.cnf or crypto policy excludes it; ignore this if it is intended");
        return true;
    }
    if (!self_test->delivered) {
        doctor_add(diagnosis, "cipher", VERDICT_FAULT, "%s: a file did not arrive completely: %s", suite->name,
                   self_test->fault);
        doctor_advise(diagnosis, "run with ssl_ktls: off, and report this bug");
        return false;
    }
    if (self_test->path == PATH_KTLS_SENDFILE)
        doctor_add(diagnosis, "cipher", VERDICT_GOOD,
                   "%s: the kernel accepts the key, and a file arrived intact", suite->name);
    else
        doctor_add(diagnosis, "cipher", VERDICT_NOTE,
                   "%s: the kernel accepts the key, but was not used (tls_path %s, tls_path_reason %s)",
                   suite->name, wire_path_name((enum wire_path)self_test->path),
                   wire_reason_name(self_test->reason));
    return true;
}
