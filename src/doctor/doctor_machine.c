/*
 * The software, the processor and the limits of a machine, as tables of a report. None of the files that are read here
 * has names of users or hosts.
 */
#include "doctor/doctor_markdown.h"

#include "build_options.h"
#include "build_versions.h"

#include <inttypes.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_MAX = 256, FLAGS_MAX = 8192 };

void doctor_machine_kernel(const struct host *host, char *into, size_t size)
{
    if (!host_line(host, "/proc/sys/kernel/osrelease", "", into, size))
        snprintf(into, size, "unknown");
}

/* Copies the value of the first line "NAME : VALUE" of /proc/cpuinfo that has one of the names. */
static bool processor_line(const struct host *host, const char *const *names, char *into, size_t size)
{
    for (; *names; names++) {
        char *value;

        if (!host_line(host, "/proc/cpuinfo", *names, into, size))
            continue;
        value = into + strspn(into, " \t:");
        memmove(into, value, strlen(value) + 1);
        return true;
    }
    into[0] = '\0';
    return false;
}

void doctor_machine_model(const struct host *host, char *into, size_t size)
{
    /* "CPU implementer" is the only identification of ARM processors. */
    static const char *const names[] = {"model name", "Model", "cpu model", "CPU implementer", NULL};

    if (!processor_line(host, names, into, size) || !into[0])
        snprintf(into, size, "unknown");
}

/* The name of the distribution, without its quotes. */
static void read_distribution(const struct host *host, char *into, size_t size)
{
    char *end;

    if (!host_line(host, "/etc/os-release", "PRETTY_NAME=", into, size))
        return;
    if (into[0] == '"')
        memmove(into, into + 1, strlen(into));
    end = strrchr(into, '"');
    if (end)
        *end = '\0';
}

void doctor_machine_versions(FILE *out, const struct host *host)
{
    char text[TEXT_MAX];
    char libc[64] = "unknown";

    markdown_table(out, "Versions");
    markdown_row(out, "sluice", "%s", SLUICE_VERSION);
    markdown_row(out, "OpenSSL", "built with %s, running with %s", OPENSSL_VERSION_TEXT,
                 OpenSSL_version(OPENSSL_VERSION));
    markdown_row(out, "libraries at build time", "%s", BUILD_LIBRARIES);
    markdown_row(out, "compiler", "%s", BUILD_COMPILER);
    markdown_row(out, "build options", "%s", BUILD_OPTIONS);
    markdown_row(out, "event loops", "%s", BUILD_LOOPS);
    doctor_machine_kernel(host, text, sizeof(text));
    markdown_row(out, "kernel", "Linux %s", text);
    if (confstr(_CS_GNU_LIBC_VERSION, libc, sizeof(libc)) == 0)
        snprintf(libc, sizeof(libc), "unknown");
    markdown_row(out, "C library", "%s", libc);
    read_distribution(host, text, sizeof(text));
    markdown_row(out, "distribution", "%s", text);
}

/* Keeps the words that concern encryption and copying. */
static void select_features(char *flags, char *into, size_t size)
{
    static const char *const known[] = {
        "aes",  "pclmulqdq", "vaes", "vpclmulqdq", "avx",    "avx2", "avx512f", "avx512vl", "avx512bw", "bmi2",  "adx",
        "erms", "fsrm",      "gfni", "sha_ni",     "sha1",   "sha2", "sha512",  "pmull",    "asimd",    "sve",
        "hypervisor",
    };
    size_t length = 0;
    char *rest = flags;

    into[0] = '\0';
    for (char *word = strtok_r(flags, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && length < size; i++) {
            if (strcmp(word, known[i]) == 0)
                length += (size_t)snprintf(into + length, size - length, "%s%s", length ? " " : "", word);
        }
    }
}

void doctor_machine_processor(FILE *out, const struct host *host)
{
    static const char *const names[] = {"flags", "Features", NULL};
    char text[TEXT_MAX];
    char *flags = malloc(FLAGS_MAX);
    cpu_set_t usable;

    markdown_table(out, "Processor");
    doctor_machine_model(host, text, sizeof(text));
    markdown_row(out, "model", "%s", text);
    if (sched_getaffinity(0, sizeof(usable), &usable) == 0)
        markdown_row(out, "cores", "%ld online, %d usable by this process", sysconf(_SC_NPROCESSORS_ONLN),
                     CPU_COUNT(&usable));
    if (flags && processor_line(host, names, flags, FLAGS_MAX)) {
        select_features(flags, text, sizeof(text));
        markdown_row(out, "features", "%s", text);
    }
    free(flags);
}

/*
 * Reads the nearest limit of cgroup version 2: of the group of this process, or of the next group above it that has
 * one. False: there is no limit, or it is not known.
 */
static bool cgroup_limit(const struct host *host, const char *file, char *into, size_t size)
{
    char group[PATH_MAX];
    char path[PATH_MAX + TEXT_MAX];

    if (!host_line(host, "/proc/self/cgroup", "0::", group, sizeof(group)))
        return false;
    for (;;) {
        char *slash = strrchr(group, '/');

        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, file);
        if (host_line(host, path, "", into, size) && strncmp(into, "max", 3) != 0)
            return true;
        if (!slash)
            return false;
        *slash = '\0';
    }
}

static void report_memory(FILE *out, const struct host *host)
{
    char text[TEXT_MAX];

    if (host_line(host, "/proc/meminfo", "MemTotal:", text, sizeof(text)))
        markdown_row(out, "memory", "%lld MiB", atoll(text) / 1024);
    if (host_line(host, "/proc/meminfo", "MemAvailable:", text, sizeof(text)))
        markdown_row(out, "available memory", "%lld MiB", atoll(text) / 1024);
    if (cgroup_limit(host, "memory.max", text, sizeof(text)))
        markdown_row(out, "memory of the cgroup", "at most %lld MiB", atoll(text) / (1024 * 1024));
}

void doctor_machine_limits(FILE *out, const struct host *host)
{
    char text[TEXT_MAX];
    long long quota, period;

    markdown_table(out, "Limits");
    report_memory(out, host);
    if (cgroup_limit(host, "cpu.max", text, sizeof(text)) &&
        sscanf(text, "%lld %lld", &quota, &period) == 2 && period > 0)
        markdown_row(out, "processor time of the cgroup", "at most %.2f cores", (double)quota / (double)period);
    if (cgroup_limit(host, "pids.max", text, sizeof(text)))
        markdown_row(out, "processes of the cgroup", "at most %lld", atoll(text));
}
