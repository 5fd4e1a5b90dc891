/*
 * The kernel and its tls module: present, installed, or loaded on demand. Loading on demand needs CAP_NET_ADMIN in
 * the initial user namespace, and modprobe.
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOAD_AT_BOOT_HINT "to keep it: echo tls > /etc/modules-load.d/tls.conf"

#define MODPROBE "/proc/sys/kernel/modprobe"

enum { TEXT_MAX = 256 };

/* Returns CONFIG_TLS of the kernel, if its configuration is installed: 'y', 'm', 'n', or 0 for unknown. */
static char kernel_option(const struct host *host, const char *release)
{
    char path[TEXT_MAX];
    char value[TEXT_MAX];

    snprintf(path, sizeof(path), "/boot/config-%.200s", release);
    if (!host_has(host, path, R_OK))
        return 0;
    return host_line(host, path, "CONFIG_TLS=", value, sizeof(value)) ? value[0] : 'n';
}

static bool module_installed(const struct host *host, const char *release)
{
    static const char *const endings[] = {"", ".xz", ".zst", ".gz"};
    char path[TEXT_MAX];

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        snprintf(path, sizeof(path), "/lib/modules/%.180s/kernel/net/tls/tls.ko%s", release, endings[i]);
        if (host_has(host, path, F_OK))
            return true;
    }
    return false;
}

/* True outside the initial user namespace, where capabilities do not permit loading modules. */
static bool in_user_namespace(const struct host *host)
{
    char map[TEXT_MAX];
    unsigned long long inside = 0;
    unsigned long long outside = 0;
    unsigned long long count = UINT32_MAX;

    if (host_line(host, "/proc/self/uid_map", "", map, sizeof(map)))
        sscanf(map, "%llu %llu %llu", &inside, &outside, &count);
    return inside != 0 || outside != 0 || count < UINT32_MAX;
}

static bool may_load(const struct host *host)
{
    char text[TEXT_MAX];

    return !in_user_namespace(host) && host_line(host, "/proc/self/status", "CapEff:", text, sizeof(text)) &&
           (strtoull(text, NULL, 16) >> CAP_NET_ADMIN & 1);
}

/* Writes the reason why the kernel cannot load a module for this process; empty: it can. */
static void unloaded_reason(const struct host *host, char *into, size_t size)
{
    char modprobe[TEXT_MAX];

    into[0] = '\0';
    if (!host_line(host, MODPROBE, "", modprobe, sizeof(modprobe)))
        snprintf(into, size, "this kernel loads no modules");
    else if (host_number(host, "/proc/sys/kernel/modules_disabled", 0) != 0)
        snprintf(into, size,
                 "loading modules is switched off until the next boot (sysctl kernel.modules_disabled)");
    else if (in_user_namespace(host))
        snprintf(into, size, "this is a user namespace (a container), for which the kernel loads no modules");
    else if (!may_load(host))
        snprintf(into, size, "the kernel loads it only for processes with CAP_NET_ADMIN, and this process lacks it");
    else if (!modprobe[0])
        snprintf(into, size, "the kernel may not run modprobe (sysctl kernel.modprobe is empty)");
    else if (!host_has(host, modprobe, X_OK))
        snprintf(into, size, "the program %.180s, which the kernel runs, does not exist (package kmod)", modprobe);
}

static void report_missing(struct diagnosis *diagnosis, const struct host *host, const char *release)
{
    char why[TEXT_MAX];

    doctor_add(diagnosis, "module", VERDICT_FAULT,
               "the kernel has no TLS for TCP sockets (TCP_ULP \"tls\": %s)", strerror(ENOENT));
    if (kernel_option(host, release) == 'n' || !host_has(host, MODPROBE, F_OK))
        doctor_advise(diagnosis, "this kernel was built without CONFIG_TLS: another kernel is needed (those of "
                                 "Debian have it)");
    else if (in_user_namespace(host))
        doctor_advise(diagnosis, "in a container the host must load it: modprobe tls there; " LOAD_AT_BOOT_HINT);
    else if (module_installed(host, release))
        doctor_advise(diagnosis, "%smodprobe tls; " LOAD_AT_BOOT_HINT, may_load(host) ? "" : "as root: ");
    else
        doctor_advise(
            diagnosis,
            "no module tls is installed for this kernel: in a container, the host must modprobe tls; elsewhere a "
            "kernel built with CONFIG_TLS is needed (those of Debian have it)");
    unloaded_reason(host, why, sizeof(why));
    doctor_add(diagnosis, "autoload", VERDICT_NOTE, "the module tls was not loaded on demand: %s",
               why[0] ? why : "modprobe ran, but did not find it or was denied");
}

/* Reports the TLS of the kernel: built in, or a module, which may not be loaded after the next boot. */
static void report_present(struct diagnosis *diagnosis, const struct host *host)
{
    char line[TEXT_MAX];
    char why[TEXT_MAX];

    doctor_add(diagnosis, "module", VERDICT_GOOD, "the kernel's tls module is available");
    if (!host_line(host, "/proc/modules", "tls ", line, sizeof(line)))
        return;
    unloaded_reason(host, why, sizeof(why));
    if (!why[0]) {
        doctor_add(diagnosis, "autoload", VERDICT_GOOD,
                   "the kernel would load it again on demand for this user");
        return;
    }
    doctor_add(diagnosis, "autoload", VERDICT_NOTE, "after a reboot it would not be loaded automatically: %s",
               why);
    doctor_advise(diagnosis, LOAD_AT_BOOT_HINT);
}

static void report_rekeying(struct diagnosis *diagnosis)
{
    if (diagnosis->support.rekey)
        doctor_add(diagnosis, "rekey", VERDICT_GOOD,
                   "the kernel supports a second key, so connections continue after a KeyUpdate");
    else
        doctor_add(diagnosis, "rekey", VERDICT_NOTE,
                   "the kernel supports no second key (6.14 and later do): after a KeyUpdate a connection closes "
                   "with its response");
}

void doctor_examine_module(struct diagnosis *diagnosis, const struct host *host)
{
    enum ktls_reason reason = diagnosis->support.reason[1][RECORD_AES_128_GCM];
    char release[TEXT_MAX];

    if (host_line(host, "/proc/sys/kernel/osrelease", "", release, sizeof(release)))
        doctor_add(diagnosis, "kernel", VERDICT_GOOD, "Linux %.200s", release);
    if (reason == KTLS_NO_MODULE)
        report_missing(diagnosis, host, release);
    else if (reason == KTLS_OK || reason == KTLS_CIPHER)
        report_present(diagnosis, host);
    if (reason == KTLS_OK)
        report_rekeying(diagnosis);
}
