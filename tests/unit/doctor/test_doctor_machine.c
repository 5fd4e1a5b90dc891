#include "doctor/doctor_markdown.h"

#include "machine.h"

#include <stdlib.h>

static const struct host host = {root, NULL};

static char *text;

/* Returns the text that a function writes. */
static const char *written(void (*write_table)(FILE *out, const struct host *from))
{
    size_t length;
    FILE *out;

    free(text);
    text = NULL;
    out = open_memstream(&text, &length);
    write_table(out, &host);
    fclose(out);
    return text;
}

static void set_up(void)
{
    machine_make();
}

static void tear_down(void)
{
    free(text);
    text = NULL;
    machine_remove();
}

static void has(const char *line)
{
    ck_assert_msg(strstr(text, line) != NULL, "\"%s\" is not in\n%s", line, text);
}

static void lacks(const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "\"%s\" is in\n%s", part, text);
}

START_TEST(software)
{
    set_up();
    write_host_file("/etc/os-release", "NAME=\"Zebra\"\nPRETTY_NAME=\"Zebra <|> 7\"\n");
    write_host_file("/proc/sys/kernel/osrelease", "6.9.0-test\n");
    written(doctor_machine_versions);
    has("| kernel | Linux 6.9.0-test |\n");
    has("| distribution | Zebra &lt;\\|> 7 |\n");
    has("| libraries at build time | libyaml ");
    has("running with OpenSSL ");
    has("buildtype=");
    tear_down();
    set_up();
    written(doctor_machine_versions);
    has("| kernel | Linux unknown |\n");
    lacks("distribution");
    tear_down();
}
END_TEST

/* The line of the flags may be longer than a usual buffer. */
START_TEST(processor)
{
    char lines[8000] = "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nflags\t\t: fpu";

    set_up();
    for (int i = 0; i < 200; i++)
        strcat(lines, " unknown_flag");
    strcat(lines, " aes vaes avx2 hypervisor\n");
    write_host_file("/proc/cpuinfo", lines);
    written(doctor_machine_processor);
    has("| model | Fast CPU @ 3 GHz |\n");
    has("| features | aes vaes avx2 hypervisor |\n");
    write_host_file("/proc/cpuinfo", "CPU implementer\t: 0x41\nFeatures\t: fp asimd aes pmull\n");
    written(doctor_machine_processor);
    has("| model | 0x41 |\n");
    has("| features | asimd aes pmull |\n");
    write_host_file("/proc/cpuinfo", "");
    written(doctor_machine_processor);
    has("| model | unknown |\n");
    has("usable by this process |\n");
    lacks("features");
    tear_down();
}
END_TEST

START_TEST(limits_of_the_nearest_group)
{
    set_up();
    write_host_file("/proc/meminfo", "MemTotal:        8388608 kB\nMemAvailable:    4194304 kB\n");
    write_host_file("/proc/self/cgroup", "4:memory:/other\n0::/user.slice/user-1000.slice/a.scope\n");
    write_host_file("/sys/fs/cgroup/user.slice/user-1000.slice/a.scope/memory.max", "max\n");
    write_host_file("/sys/fs/cgroup/user.slice/user-1000.slice/memory.max", "1073741824\n");
    write_host_file("/sys/fs/cgroup/user.slice/memory.max", "2147483648\n");
    write_host_file("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
    write_host_file("/sys/fs/cgroup/user.slice/user-1000.slice/a.scope/pids.max", "max\n");
    written(doctor_machine_limits);
    has("| memory | 8192 MiB |\n| available memory | 4096 MiB |\n| memory of the cgroup | at most 1024 MiB |\n");
    has("| processor time of the cgroup | at most 1.50 cores |\n");
    lacks("processes");
    lacks("slice");
    write_host_file("/sys/fs/cgroup/pids.max", "100\n"); /* as in a container, where the group is the root */
    write_host_file("/proc/self/cgroup", "0::/\n");
    written(doctor_machine_limits);
    has("| processes of the cgroup | at most 100 |\n");
    lacks("memory of the cgroup");
    tear_down();
    set_up();
    written(doctor_machine_limits);
    lacks("MiB");
    tear_down();
}
END_TEST

int main(void)
{
    return run_tests("doctor_machine", (const TTest *const[]){software, processor, limits_of_the_nearest_group, NULL});
}
