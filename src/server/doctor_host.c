/*
 * What the machine says: kernel and its build, the tls module, each cipher by a real
 * try, the loop's backend, and limits.
 */
#include "server/doctor.h"

#include "build_options.h"
#include "io/backends.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* True where a line of the file begins with `start`; the line without its newline in `into`. */
static bool find_line(const char *path, const char *start, char *into, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found = false;

    while (file && !found && fgets(into, (int)size, file))
        found = strncmp(into, start, strlen(start)) == 0;
    if (file)
        fclose(file);
    into[strcspn(into, "\n")] = '\0';
    return found;
}

/* How this kernel was configured, where its packager left that: "y", "m", "n", or "" for unknown. */
static const char *configured(const struct utsname *kernel)
{
    char path[256];
    char line[256] = "";

    snprintf(path, sizeof(path), "/boot/config-%s", kernel->release);
    if (access(path, R_OK) < 0)
        return "";
    if (!find_line(path, "CONFIG_TLS=", line, sizeof(line)))
        return "n";
    return line[strlen("CONFIG_TLS=")] == 'm' ? "m" : "y";
}

/* True where the module lies ready to be loaded. */
static bool module_installed(const struct utsname *kernel)
{
    static const char *const endings[] = {"", ".xz", ".zst", ".gz"};
    char path[256];

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        snprintf(path, sizeof(path), "/lib/modules/%s/kernel/net/tls/tls.ko%s", kernel->release, endings[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static void advise_module(struct diagnosis *diagnosis, const struct utsname *kernel)
{
    if (module_installed(kernel))
        doctor_advise(diagnosis, "%smodprobe tls; to keep it: echo tls > /etc/modules-load.d/tls.conf",
                      geteuid() == 0 ? "" : "as root: ");
    else if (configured(kernel)[0] == 'n')
        doctor_advise(diagnosis, "this kernel was built without CONFIG_TLS: it takes another one (Debian's "
                                 "linux-image-amd64 has it)");
    else
        doctor_advise(
            diagnosis,
            "no module tls is installed for this kernel: in a container, the host must modprobe tls; "
            "elsewhere it takes a kernel built with CONFIG_TLS (Debian's linux-image-amd64 has it)");
}

static void examine_kernel(struct diagnosis *diagnosis)
{
    char line[256] = "";
    struct utsname kernel;
    bool listed;

    if (uname(&kernel) < 0)
        return;
    doctor_find(diagnosis, "kernel", VERDICT_GOOD, "Linux %.100s on %.60s", kernel.release, kernel.machine);
    listed = find_line("/proc/sys/net/ipv4/tcp_available_ulp", "", line, sizeof(line)) && strstr(line, "tls");
    if (diagnosis->support.reason[1][RECORD_AES_128_GCM] == KTLS_NO_MODULE) {
        doctor_find(diagnosis, "module", VERDICT_FAULT,
                    "the kernel has no TLS for TCP sockets (TCP_ULP \"tls\": %s)", strerror(ENOENT));
        advise_module(diagnosis, &kernel);
    } else if (listed) {
        doctor_find(diagnosis, "module", VERDICT_GOOD, "the kernel's tls module is there");
    } else {
        doctor_find(diagnosis, "module", VERDICT_NOTE, "the tls module is not listed in tcp_available_ulp");
    }
}

static void advise_reason(struct diagnosis *diagnosis, enum ktls_reason reason)
{
    switch (reason) {
    case KTLS_NOT_BUILT:
        doctor_advise(diagnosis,
                      "build sluice again with linux/tls.h at hand (linux-libc-dev) and -Dktls=enabled");
        break;
    case KTLS_NO_PERMISSION:
        doctor_advise(
            diagnosis,
            "a sandbox forbids it: allow setsockopt TCP_ULP and SOL_TLS in its seccomp or LSM policy");
        break;
    case KTLS_CIPHER:
        doctor_advise(diagnosis, "this kernel lacks the cipher or the version: 5.1 brought TLS 1.3 and "
                                 "AES-256, 5.11 ChaCha20-Poly1305");
        break;
    case KTLS_ULP_REFUSED:
        doctor_advise(diagnosis,
                      "another protocol sits on TCP sockets here (MPTCP, a BPF sockmap), or memory is short");
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

static void examine_ciphers(struct diagnosis *diagnosis)
{
    static const char *const versions[] = {"TLS 1.2", "TLS 1.3"};
    static const char *const ciphers[] = {
        [RECORD_AES_128_GCM] = "AES-128-GCM",
        [RECORD_AES_256_GCM] = "AES-256-GCM",
        [RECORD_CHACHA20_POLY1305] = "ChaCha20-Poly1305",
    };
    const struct ktls_support *support = &diagnosis->support;
    enum ktls_reason advised = KTLS_OK; /* once is enough */

    for (unsigned version = 2; version-- > 0;) {
        for (unsigned cipher = RECORD_AES_128_GCM; cipher <= RECORD_CHACHA20_POLY1305; cipher++) {
            enum ktls_reason reason = support->reason[version][cipher];
            /* One cipher that works is enough for the kernel to encrypt; ours comes first in the server's
             * order. */
            enum verdict bad = version == 1 && cipher == RECORD_AES_128_GCM ? VERDICT_FAULT : VERDICT_NOTE;

            doctor_find(diagnosis, "cipher", reason == KTLS_OK ? VERDICT_GOOD : bad, "%s %s: %s",
                        versions[version], ciphers[cipher],
                        reason == KTLS_OK ? "the kernel takes the key" : ktls_reason_name(reason));
            if (reason != advised)
                advise_reason(diagnosis, reason);
            advised = reason;
        }
    }
    if (support->reason[1][RECORD_AES_128_GCM] == KTLS_OK && !support->rekey)
        doctor_find(diagnosis, "rekey", VERDICT_NOTE,
                    "the kernel takes no second key (6.14 and later do): after a KeyUpdate a connection ends "
                    "with its answer");
}

static void ignore_line(void *owner, enum log_level level, struct str line)
{
}

static void examine_backend(struct diagnosis *diagnosis, const struct loop_backend *backend)
{
    struct log silent = {.level = LOG_EMERG, .sink = ignore_line};
    struct loop loop;
    int error = loop_open_backend(&loop, backend, &silent);

    if (error == 0) {
        loop_close(&loop);
        doctor_find(diagnosis, "loop", VERDICT_GOOD, "loop: %s works", backend->name);
        return;
    }
    doctor_find(diagnosis, "loop", VERDICT_NOTE, "loop: %s: %s", backend->name, strerror(-error));
    if (error == -EPERM || error == -ENOSYS)
        doctor_advise(diagnosis, "containers often forbid io_uring (seccomp), or sysctl "
                                 "kernel.io_uring_disabled does; epoll is used instead");
    else if (error == -ENOMEM)
        doctor_advise(diagnosis, "raise RLIMIT_MEMLOCK (ulimit -l); epoll is used instead");
}

static void examine_limits(struct diagnosis *diagnosis)
{
    struct rlimit files;
    struct rlimit locked;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        bool small = files.rlim_max < 8192;

        doctor_find(diagnosis, "files", small ? VERDICT_NOTE : VERDICT_GOOD,
                    "open files: %llu, raised to %llu at start", (unsigned long long)files.rlim_cur,
                    (unsigned long long)files.rlim_max);
        if (small)
            doctor_advise(
                diagnosis,
                "a connection that sends a file holds two: raise the hard limit (LimitNOFILE=, ulimit -Hn)");
    }
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
        doctor_find(diagnosis, "memlock", VERDICT_GOOD,
                    "locked memory: %llu KiB (io_uring counts it before Linux 5.12)",
                    (unsigned long long)locked.rlim_cur / 1024);
}

void doctor_examine_host(struct diagnosis *diagnosis)
{
    ktls_probe(&ktls_calls_kernel, &diagnosis->support);
    examine_kernel(diagnosis);
    examine_ciphers(diagnosis);
    for (size_t i = 0; loop_backends[i]; i++)
        examine_backend(diagnosis, loop_backends[i]);
    examine_limits(diagnosis);
}
