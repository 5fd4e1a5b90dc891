/*
 * Resource limits of a server: loop backend, descriptors, locked memory, send buffers; and network devices that
 * encrypt TLS.
 */
#include "doctor/doctor.h"

#include "site/core.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define ENOUGH_TO_SEND (1024 * 1024)

enum { TEXT_MAX = 256, DEVICES_MAX = 8 };

/* Explains EPERM, with the setting to change. */
static void advise_forbidden(struct diagnosis *diagnosis, const struct host *host)
{
    long long disabled = host_number(host, "/proc/sys/kernel/io_uring_disabled", 0);
    char seccomp[TEXT_MAX];

    if (disabled == 2)
        doctor_advise(diagnosis,
                      "sysctl kernel.io_uring_disabled is 2: no process may use it; epoll is used instead");
    else if (disabled == 1)
        doctor_advise(
            diagnosis,
            "sysctl kernel.io_uring_disabled is 1: only root and kernel.io_uring_group may use it; epoll is "
            "used instead");
    else if (host_line(host, "/proc/self/status", "Seccomp:", seccomp, sizeof(seccomp)) && seccomp[0] == '2')
        doctor_advise(diagnosis,
                      "a seccomp filter forbids it (the default profiles of containers do); epoll is used instead");
    else
        doctor_advise(diagnosis, "a security module of the kernel forbids it; epoll is used instead");
}

void doctor_report_loop(struct diagnosis *diagnosis, const struct host *host, const char *backend, int error)
{
    if (error == 0) {
        doctor_add(diagnosis, "loop", VERDICT_GOOD, "loop: %s works", backend);
        return;
    }
    doctor_add(diagnosis, "loop", VERDICT_NOTE, "loop: %s: %s", backend, strerror(-error));
    switch (error) {
    case -EPERM:
    case -EACCES:
        advise_forbidden(diagnosis, host);
        break;
    case -ENOSYS:
        doctor_advise(diagnosis,
                      "this kernel (or the sandbox around it) has no io_uring; epoll is used instead");
        break;
    case -ENOMEM:
        doctor_advise(diagnosis,
                      "raise RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK=), which all rings of a user share, or "
                      "start as root; epoll is used instead");
        break;
    case -ENOPKG:
        doctor_advise(diagnosis,
                      "it is not built in: rebuild with liburing installed and -Dio_uring=enabled");
        break;
    case -EMFILE:
    case -ENFILE:
        doctor_advise(diagnosis, "raise RLIMIT_NOFILE (ulimit -n, LimitNOFILE=)");
        break;
    default:
        break;
    }
}

static uint64_t default_connections(void)
{
    const struct directive *row = core_main_group.directives;
    uint64_t connections = 0;

    while (row->name && strcmp(row->name, "worker_connections") != 0)
        row++;
    return row->name && str_to_u64(str_from(row->default_value), &connections) == 0 ? connections : 0;
}

/* Parses "Max open files   1024   20000   files": soft and hard; "unlimited" is UINT64_MAX. False: not found. */
static bool limit_of(const struct host *host, const char *name, uint64_t *out_soft, uint64_t *out_hard)
{
    uint64_t *const both[] = {out_soft, out_hard};
    char text[TEXT_MAX];
    char *rest = text;

    if (!host_line(host, "/proc/self/limits", name, text, sizeof(text)))
        return false;
    for (int i = 0; i < 2; i++) {
        char *word = strtok_r(i ? NULL : text, " ", &rest);

        if (!word)
            return false;
        *both[i] = strcmp(word, "unlimited") == 0 ? UINT64_MAX : strtoull(word, NULL, 10);
    }
    return true;
}

void doctor_examine_limits(struct diagnosis *diagnosis, const struct host *host)
{
    uint64_t usual = default_connections();
    uint64_t soft;
    uint64_t hard;

    if (limit_of(host, "Max open files", &soft, &hard)) {
        /* A connection may hold a file as well; listeners, logs and the loop need more. */
        uint64_t connections = hard > 32 ? (hard - 32) / 2 : 0;
        bool small = connections < usual;

        doctor_add(diagnosis, "files", small ? VERDICT_NOTE : VERDICT_GOOD,
                   "open files: %" PRIu64 ", raised to %" PRIu64 " at start: enough for %" PRIu64
                   " worker_connections (the default is %" PRIu64 ")",
                   soft, hard, connections, usual);
        if (small)
            doctor_advise(diagnosis,
                          "a connection that sends a file uses two: raise the hard limit to %" PRIu64
                          " (LimitNOFILE=, ulimit -Hn), or lower worker_connections",
                          2 * usual + 32);
    }
    if (limit_of(host, "Max locked memory", &soft, &hard) && soft != UINT64_MAX)
        doctor_add(diagnosis, "memlock", VERDICT_GOOD,
                   "locked memory: %" PRIu64
                   " KiB; Linux before 5.12, and newer versions again, count the rings of io_uring of users "
                   "other than root",
                   soft / 1024);
}

void doctor_examine_buffers(struct diagnosis *diagnosis, const struct host *host)
{
    unsigned long long min;
    unsigned long long usual;
    unsigned long long max;
    long long limit = host_number(host, "/proc/sys/net/core/wmem_max", -1);
    char text[TEXT_MAX];

    if (!host_line(host, "/proc/sys/net/ipv4/tcp_wmem", "", text, sizeof(text)) ||
        sscanf(text, "%llu %llu %llu", &min, &usual, &max) != 3)
        return;
    doctor_add(diagnosis, "buffers", max < ENOUGH_TO_SEND ? VERDICT_NOTE : VERDICT_GOOD,
               "send buffers grow from %llu to %llu KiB (net.ipv4.tcp_wmem)", usual / 1024, max / 1024);
    if (max < ENOUGH_TO_SEND)
        doctor_advise(
            diagnosis,
            "too small for fast, distant clients: sysctl -w net.ipv4.tcp_wmem=\"%llu %llu 4194304\"",
            min, usual);
    if (limit >= 0)
        doctor_add(diagnosis, "wmem_max", VERDICT_GOOD,
                   "send buffers set by SO_SNDBUF: at most %lld KiB (net.core.wmem_max); sluice does not set it",
                   limit / 1024);
}

static void report_device(struct diagnosis *diagnosis, const struct host *host, const char *device)
{
    struct ktls_device offload = {false, false};

    if (host->offload(device, &offload) < 0)
        doctor_add(diagnosis, "device", VERDICT_NOTE, "%.32s: TLS offload could not be queried",
                   device);
    else if (offload.active)
        doctor_add(diagnosis, "device", VERDICT_GOOD,
                   "%.32s: encrypts TLS by itself (tls-hw-tx-offload: on)", device);
    else
        doctor_add(diagnosis, "device", VERDICT_NOTE,
                   "%.32s: does not encrypt TLS (tls-hw-tx-offload: off%s)", device,
                   offload.available ? "" : " [fixed]");
    if (offload.available && !offload.active)
        doctor_advise(diagnosis, "ethtool -K %.32s tls-hw-tx-offload on, and measure the effect", device);
}

/* ARPHRD_LOOPBACK; entries that are not devices (bonding_masters) have no type. */
static bool is_device(const struct host *host, const char *name)
{
    char path[TEXT_MAX];

    snprintf(path, sizeof(path), "/sys/class/net/%.64s/type", name);
    return name[0] != '.' && host_number(host, path, 772) != 772;
}

void doctor_examine_devices(struct diagnosis *diagnosis, const struct host *host)
{
    char path[PATH_MAX];
    struct dirent **entries;
    unsigned examined = 0;
    unsigned all = 0;
    int count;

    snprintf(path, sizeof(path), "%s/sys/class/net", host->root);
    count = scandir(path, &entries, NULL, alphasort);
    if (count < 0)
        return;
    for (int i = 0; i < count; i++) {
        if (is_device(host, entries[i]->d_name) && all++ < DEVICES_MAX) {
            report_device(diagnosis, host, entries[i]->d_name);
            examined++;
        }
        free(entries[i]);
    }
    free(entries);
    if (all > examined)
        doctor_add(diagnosis, "device", VERDICT_NOTE, "%u more network devices were not examined", all - examined);
}
