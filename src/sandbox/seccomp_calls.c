/*
 * The groups, each with its reason. A call is added when code of the server or of a library begins to use it: the
 * master logs the name of a missing call.
 */
#include "sandbox/seccomp_calls.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/prctl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define CALLS(...) ((const char *const[]){__VA_ARGS__, NULL})

const struct seccomp_group seccomp_groups[] = {
    {SECCOMP_ALWAYS, "the event loop, and the loop of c-ares in it",
     CALLS("epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "poll", "ppoll", "eventfd2", "signalfd4",
           "restart_syscall")},
    {SECCOMP_URING, "the event loop of io_uring; io_uring_setup is not among them", CALLS("io_uring_enter")},
    {SECCOMP_ALWAYS, "sockets of clients, upstream servers, name servers, and of the master",
     CALLS("accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "recvfrom", "recvmsg",
           "sendfile", "sendmsg", "sendto", "setsockopt", "shutdown")},
    {SECCOMP_ALWAYS, "bodies that go from one socket to another by splice", CALLS("pipe2", "splice")},
    {SECCOMP_ALWAYS, "files: static ones, caches, temporary files, logs",
     CALLS("access", "close", "copy_file_range", "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64",
           "fallocate", "flock", "fstat", "fstatfs", "ftruncate", "getdents64", "linkat", "lseek", "lstat",
           "mkdir", "mkdirat", "newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64",
           "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv", "rename", "renameat",
           "renameat2", "stat", "statfs", "statx", "unlink", "unlinkat", "utimensat", "write", "writev")},
    {SECCOMP_ALWAYS, "memory", CALLS("brk", "madvise", "mremap", "munmap")},
    {SECCOMP_ALWAYS, "helper threads and locks",
     CALLS("exit", "exit_group", "futex", "getpriority", "gettid", "membarrier", "rseq", "rt_sigprocmask",
           "rt_sigreturn", "sched_getaffinity", "sched_yield", "set_robust_list", "sigaltstack")},
    {SECCOMP_ALWAYS, "time",
     CALLS("clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "time")},
    {SECCOMP_ALWAYS, "random numbers", CALLS("getrandom")},
    {SECCOMP_ALWAYS, "attributes of the process, read by OpenSSL, c-ares and libc",
     CALLS("getcpu", "getcwd", "getegid", "geteuid", "getgid", "getpid", "getppid", "getrlimit", "getrusage", "getuid",
           "sysinfo", "uname")},
    {SECCOMP_SANITIZED, "reports of sanitizers, and the tracing thread of LeakSanitizer",
     CALLS("arch_prctl", "clone", "execve", "fork", "getdents", "ioctl", "kill", "mmap", "mprotect", "personality",
           "pipe", "prctl", "prlimit64", "process_vm_readv", "ptrace", "rt_sigaction", "rt_sigsuspend", "setrlimit",
           "tgkill", "vfork", "wait4")},
    {0},
};

#define ALL UINT64_MAX
#define TYPE 0xf /* of a socket, without SOCK_NONBLOCK and SOCK_CLOEXEC */
#define THREAD (CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)
#define NAMESPACES                                                                                                    \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* The low half suffices for int arguments: the kernel ignores the other half. */
#define INT(argument, value) {argument, UINT32_MAX, (uint32_t)(value)}

const struct seccomp_row seccomp_rows[] = {
    /* No raw sockets, and no other protocol families. */
    {SECCOMP_ALWAYS, "socket", 2, {INT(0, AF_INET), {1, TYPE, SOCK_STREAM}}},
    {SECCOMP_ALWAYS, "socket", 2, {INT(0, AF_INET), {1, TYPE, SOCK_DGRAM}}},
    {SECCOMP_ALWAYS, "socket", 2, {INT(0, AF_INET6), {1, TYPE, SOCK_STREAM}}},
    {SECCOMP_ALWAYS, "socket", 2, {INT(0, AF_INET6), {1, TYPE, SOCK_DGRAM}}},
    {SECCOMP_ALWAYS, "socket", 2, {INT(0, AF_UNIX), {1, TYPE, SOCK_STREAM}}},
    {SECCOMP_ALWAYS, "socket", 2, {INT(0, AF_UNIX), {1, TYPE, SOCK_DGRAM}}},
    /* Without PROT_EXEC: no memory becomes executable. */
    {SECCOMP_ALWAYS, "mmap", 1, {{2, PROT_EXEC, 0}}},
    {SECCOMP_ALWAYS, "mprotect", 1, {{2, PROT_EXEC, 0}}},
    /* Creates threads, but neither processes nor namespaces. */
    {SECCOMP_ALWAYS, "clone", 1, {{0, THREAD | NAMESPACES, THREAD}}},
    /* The two signals of libc's threads, whose handlers it installs with the first thread. */
    {SECCOMP_ALWAYS, "rt_sigaction", 1, {INT(0, 32)}},
    {SECCOMP_ALWAYS, "rt_sigaction", 1, {INT(0, 33)}},
    /* A helper thread lowers its own priority. */
    {SECCOMP_ALWAYS, "setpriority", 2, {INT(0, PRIO_PROCESS), INT(1, 0)}},
    /* Reads limits, but does not set them. */
    {SECCOMP_ALWAYS, "prlimit64", 2, {INT(0, 0), {2, ALL, 0}}},
    /* Newer libc versions name memory and threads. */
    {SECCOMP_ALWAYS, "prctl", 1, {INT(0, PR_SET_VMA)}},
    {SECCOMP_ALWAYS, "prctl", 1, {INT(0, PR_SET_NAME)}},
    /* Descriptors, without F_SETOWN and F_SETSIG, which send signals. */
    {SECCOMP_ALWAYS, "fcntl", 1, {INT(1, F_DUPFD)}},
    {SECCOMP_ALWAYS, "fcntl", 1, {INT(1, F_DUPFD_CLOEXEC)}},
    {SECCOMP_ALWAYS, "fcntl", 1, {INT(1, F_GETFD)}},
    {SECCOMP_ALWAYS, "fcntl", 1, {INT(1, F_SETFD)}},
    {SECCOMP_ALWAYS, "fcntl", 1, {INT(1, F_GETFL)}},
    {SECCOMP_ALWAYS, "fcntl", 1, {INT(1, F_SETFL)}},
    {SECCOMP_ALWAYS, "fcntl", 1, {INT(1, F_GETPIPE_SZ)}},
    {SECCOMP_ALWAYS, "fcntl", 1, {INT(1, F_SETPIPE_SZ)}},
    {SECCOMP_ALWAYS, "fcntl", 1, {INT(1, F_GET_SEALS)}},
    /* Bytes in sockets and pipes; names of interfaces, for link-local name servers; isatty of libc. */
    {SECCOMP_ALWAYS, "ioctl", 1, {INT(1, FIONREAD)}},
    {SECCOMP_ALWAYS, "ioctl", 1, {INT(1, FIONBIO)}},
    {SECCOMP_ALWAYS, "ioctl", 1, {INT(1, SIOCOUTQ)}},
    {SECCOMP_ALWAYS, "ioctl", 1, {INT(1, SIOCOUTQNSD)}},
    {SECCOMP_ALWAYS, "ioctl", 1, {INT(1, SIOCGIFINDEX)}},
    {SECCOMP_ALWAYS, "ioctl", 1, {INT(1, SIOCGIFNAME)}},
    {SECCOMP_ALWAYS, "ioctl", 1, {INT(1, TCGETS)}},
    /* Closes the ring. Its highest bit states that the ring is registered: liburing sets it from version 2.4 on. */
    {SECCOMP_URING, "io_uring_register", 1, {{1, INT32_MAX, IORING_UNREGISTER_RING_FDS}}},
    {0},
};
