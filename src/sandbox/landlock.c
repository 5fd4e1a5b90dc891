/*
 * The part `landlock` (landlock(7)): a process opens only the files below its paths, and connects only to its ports.
 * Descriptors that are open already are not affected. This file defines the structures of the interface, because the
 * kernel headers may be older than the kernel.
 */
#include "sandbox/sandbox_part.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Version of the interface (ABI) that first has renames between directories, which the cache needs: Linux 5.19. */
#define ABI_MIN      2
#define ABI_TRUNCATE 3 /* Linux 6.2 */
#define ABI_PORTS    4 /* Linux 6.7 */
#define ABI_IOCTL    5 /* Linux 6.10 */
#define ABI_SCOPES   6 /* Linux 6.12 */

#define VERSION_FLAG 1u
#define RULE_PATH    1
#define RULE_PORT    2

enum {
    FILE_EXECUTE = 1 << 0,
    FILE_WRITE = 1 << 1,
    FILE_READ = 1 << 2,
    DIRECTORY_READ = 1 << 3,
    REMOVE_DIRECTORY = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_CHARACTER = 1 << 6,
    MAKE_DIRECTORY = 1 << 7,
    MAKE_FILE = 1 << 8,
    MAKE_SOCKET = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_LINK = 1 << 12,
    RENAME = 1 << 13,
    FILE_TRUNCATE = 1 << 14,
    DEVICE_IOCTL = 1 << 15,
};

enum { PORT_BIND = 1 << 0, PORT_CONNECT = 1 << 1 };
enum { SCOPE_ABSTRACT_SOCKETS = 1 << 0, SCOPE_SIGNALS = 1 << 1 };

#define READ_RIGHTS  (FILE_READ | DIRECTORY_READ)
#define WRITE_RIGHTS                                                                                                  \
    (READ_RIGHTS | FILE_WRITE | FILE_TRUNCATE | MAKE_FILE | MAKE_DIRECTORY | REMOVE_FILE | REMOVE_DIRECTORY | RENAME)
/* Only these apply to a path that is not a directory. */
#define FILE_RIGHTS  (FILE_EXECUTE | FILE_WRITE | FILE_READ | FILE_TRUNCATE | DEVICE_IOCTL)

/* Rights that the ruleset denies unless a rule grants them. */
struct ruleset {
    uint64_t files, ports, scopes;
};

struct path_rule {
    uint64_t rights;
    int32_t fd;
} __attribute__((packed));

struct port_rule {
    uint64_t rights, port;
};

static int abi_version(void)
{
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION_FLAG);
}

int landlock_probe(char *note, size_t size)
{
    int abi = abi_version();

    if (abi >= ABI_MIN)
        return 0;
    if (abi > 0)
        snprintf(note, size, "this kernel has version %d of it, and version %d is needed (Linux 5.19)", abi, ABI_MIN);
    else
        snprintf(note, size, "it is not built into this kernel (Linux 5.19), or missing in the boot option lsm=");
    return -ENOTSUP;
}

bool sandbox_limits_ports(void)
{
    return abi_version() >= ABI_PORTS;
}

static struct ruleset rights_of(int abi, const struct sandbox_ports *ports)
{
    struct ruleset ruleset = {.files = DEVICE_IOCTL * 2 - 1};

    if (abi < ABI_IOCTL)
        ruleset.files &= ~(uint64_t)DEVICE_IOCTL;
    if (abi < ABI_TRUNCATE)
        ruleset.files &= ~(uint64_t)FILE_TRUNCATE;
    if (abi >= ABI_PORTS)
        ruleset.ports = PORT_BIND | (ports->any ? 0 : PORT_CONNECT);
    if (abi >= ABI_SCOPES)
        ruleset.scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
    return ruleset;
}

static int create_ruleset(int abi, const struct ruleset *handled)
{
    size_t size = abi >= ABI_SCOPES  ? sizeof(*handled)
                  : abi >= ABI_PORTS ? offsetof(struct ruleset, scopes)
                                     : offsetof(struct ruleset, ports);
    int fd = (int)syscall(SYS_landlock_create_ruleset, handled, size, 0);

    return fd < 0 ? -errno : fd;
}

static int add_path(int ruleset, const struct ruleset *handled, const struct sandbox_path *path)
{
    struct path_rule rule = {path->access == SANDBOX_WRITE ? WRITE_RIGHTS : READ_RIGHTS, path->fd};
    struct stat status;

    if (fstat(path->fd, &status) < 0)
        return -errno;
    rule.rights &= handled->files;
    if (!S_ISDIR(status.st_mode))
        rule.rights &= FILE_RIGHTS;
    return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH, &rule, 0) < 0 ? -errno : 0;
}

static int add_port(int ruleset, uint64_t rights, uint16_t port)
{
    const struct port_rule rule = {rights, port};

    return syscall(SYS_landlock_add_rule, ruleset, RULE_PORT, &rule, 0) < 0 ? -errno : 0;
}

static int add_rules(int ruleset, const struct ruleset *handled, const struct sandbox *sandbox)
{
    int result = 0;

    for (size_t i = 0; i < sandbox->paths->count && result == 0; i++)
        result = add_path(ruleset, handled, &sandbox->paths->items[i]);
    if (result == 0 && handled->ports)
        result = add_port(ruleset, PORT_BIND, 0); /* a local address with any port, for proxy_bind */
    for (size_t i = 0; i < sandbox->ports->count && result == 0 && handled->ports & PORT_CONNECT; i++)
        result = add_port(ruleset, PORT_CONNECT, sandbox->ports->items[i]);
    return result;
}

static void print_note(int abi, const struct ruleset *handled, const struct sandbox *sandbox, char *note, size_t size)
{
    if (handled->ports & PORT_CONNECT)
        snprintf(note, size, "version %d, %zu paths, %zu ports", abi, sandbox->paths->count, sandbox->ports->count);
    else
        snprintf(note, size, "version %d, %zu paths, all ports", abi, sandbox->paths->count);
}

int landlock_apply(const struct sandbox *sandbox, struct sandbox_outcome *out_outcome)
{
    int abi = abi_version();
    struct ruleset handled = rights_of(abi, sandbox->ports);
    int ruleset = create_ruleset(abi, &handled);
    int result = ruleset;

    tzset(); /* reads /etc/localtime, which cannot be opened later */
    out_outcome->call = "landlock_create_ruleset()";
    if (ruleset >= 0) {
        out_outcome->call = "landlock_add_rule()";
        result = add_rules(ruleset, &handled, sandbox);
    }
    if (result == 0) {
        out_outcome->call = "landlock_restrict_self()";
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
            result = -errno;
    }
    if (ruleset >= 0)
        close(ruleset);
    print_note(abi, &handled, sandbox, out_outcome->note, sizeof(out_outcome->note));
    return result;
}
