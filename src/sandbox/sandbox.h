/*
 * Restricts a worker process: each part removes rights that a worker does not need, permanently. A part that the kernel
 * lacks is skipped and logged. Only base/ is used here: the caller derives paths and ports from the configuration.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "base/log.h"
#include "base/must_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum sandbox_part {
    SANDBOX_CAPABILITIES,           /* no capability, and none can be gained */
    SANDBOX_NO_DUMP,                /* the memory is not dumped, and processes of the same user cannot read it */
    SANDBOX_LANDLOCK,               /* only the files and ports of `struct sandbox` can be opened */
    SANDBOX_SECCOMP,                /* any system call that is not in a list ends the process by SIGSYS */
    SANDBOX_PARTS
};

#define SANDBOX_ALL ((1u << SANDBOX_PARTS) - 1)

/* Names by part, as in the configuration; NULL-terminated. */
extern const char *const sandbox_part_names[];

enum sandbox_access {
    SANDBOX_READ,                   /* files and directories */
    SANDBOX_WRITE,                  /* the same, and files and directories are created, written and removed */
};

/* Files, and directories with everything below them. A zeroed struct is valid and empty. */
struct sandbox_paths {
    struct sandbox_path {
        int fd;                     /* owned; O_PATH */
        enum sandbox_access access;
        dev_t device;
        ino_t inode;
    } *items;
    size_t count;
};

/* TCP ports to which the process connects. A zeroed struct is valid and empty. */
struct sandbox_ports {
    uint16_t *items;                /* owned */
    size_t count;
    bool any;                       /* all ports: the configuration does not determine them */
};

/* The sandbox of one process. */
struct sandbox {
    unsigned parts;                 /* bit i: enum sandbox_part i */
    const struct sandbox_paths *paths;
    const struct sandbox_ports *ports;
    bool io_uring;                  /* the loop has a ring */
    /* Set when a system call ends the process: see sandbox_call_name. Outlives the process. */
    uint64_t *denied_call;
};

/* Returns 0 if kernel and build have a part; else -ENOTSUP, with the reason in `note`. */
MUST_CHECK int sandbox_probe(enum sandbox_part part, char *note, size_t size);

/*
 * Adds a path (absolute) as it is now, or its nearest existing parent directory except "/". If a component is a
 * symbolic link, also the directory that contains the link's target, so that another target can be installed beside it.
 * Returns 0, or -EMFILE, -ENFILE or -ENOMEM; a path that cannot be opened for another reason is omitted, and so is one
 * that has been added before.
 */
MUST_CHECK int sandbox_paths_add(struct sandbox_paths *paths, struct str path, enum sandbox_access access);
/* Closes the descriptors, and frees the list. Accepts a zeroed struct. */
void sandbox_paths_close(struct sandbox_paths *paths);
/* Adds a port. Returns 0 or -ENOMEM. */
MUST_CHECK int sandbox_ports_add(struct sandbox_ports *ports, uint16_t port);
/* True if the port is in the list, or is 0, which no TCP connection has. */
bool sandbox_ports_permit(const struct sandbox_ports *ports, unsigned port);
/* Frees the list. Accepts a zeroed struct. */
void sandbox_ports_finish(struct sandbox_ports *ports);

/* True if this kernel limits the ports of a process with the part landlock (Linux 6.7). Called before sandbox_apply. */
bool sandbox_limits_ports(void);

/*
 * First step, before the process gives up root: drops the capability bounding set, for which it needs CAP_SETPCAP.
 * Without that capability this has no effect. Returns 0 or -errno.
 */
MUST_CHECK int sandbox_begin(unsigned parts);
/*
 * Second step: applies the parts to the calling process, which has its final user and only one thread. Logs the applied
 * parts at level info, and missing ones at level notice. Returns 0, or -errno after logging the failed call.
 */
MUST_CHECK int sandbox_apply(const struct sandbox *sandbox, struct log *log);

/* Prints the name of a system call from a value other than 0 of *denied_call, which may be any number. */
void sandbox_call_name(uint64_t denied_call, char *into, size_t size);

#endif
