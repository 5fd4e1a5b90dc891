#include "sandbox/sandbox.h"
#include "sandbox/seccomp_calls.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void ignore_line(void *owner, enum log_level level, struct str line)
{
}

/* Applies the part in a child process and runs `action`. Returns the status of waitpid; *denied is in shared memory. */
static int run_restricted(void (*action)(void), bool io_uring, uint64_t *out_denied)
{
    uint64_t *denied = mmap(NULL, sizeof(*denied), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t child = fork();

    ck_assert(denied != MAP_FAILED);
    if (child == 0) {
        struct log log = {.level = LOG_EMERG, .sink = ignore_line};
        const struct sandbox sandbox = {
            .parts = 1u << SANDBOX_SECCOMP, .io_uring = io_uring, .denied_call = denied};

        if (sandbox_apply(&sandbox, &log) < 0)
            _exit(99);
        action();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    *out_denied = *denied;
    munmap(denied, sizeof(*denied));
    return status;
}

static void assert_denied(void (*action)(void), bool io_uring, const char *expected)
{
    uint64_t denied;
    char name[64];
    int status = run_restricted(action, io_uring, &denied);

    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%s: status %x", expected, (unsigned)status);
    sandbox_call_name(denied, name, sizeof(name));
    ck_assert_str_eq(name, expected);
}

static void assert_allowed(void (*action)(void))
{
    uint64_t denied;
    int status = run_restricted(action, false, &denied);

    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x, call %d", (unsigned)status,
                  (int)denied - 1);
    ck_assert_uint_eq(denied, 0);
}

static void require(bool holds)
{
    if (!holds)
        _exit(98);
}

static void call_unshare(void)
{
    (void)syscall(SYS_unshare, 0);
}

static void call_clone(void)
{
    (void)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void call_raw_socket(void)
{
    (void)socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1);
}

static void map_code(void)
{
    (void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void kill_parent(void)
{
    (void)syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static void set_owner(void)
{
    (void)fcntl(0, F_SETOWN, 1);
}

static void enter_ring(void)
{
    (void)syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0);
}

static void open_ring(void)
{
    (void)syscall(SYS_io_uring_setup, 1, NULL);
}

static void register_buffers(void)
{
    (void)syscall(SYS_io_uring_register, -1, IORING_REGISTER_BUFFERS | 1u << 31, NULL, 1);
}

/* The signal mask of helper threads does not hide SIGSYS, but that of foreign code may. */
static void blocked(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    call_unshare();
}

START_TEST(denied_calls_end_the_process)
{
    assert_denied(call_unshare, false, "unshare");
    assert_denied(call_clone, false, "clone");
    assert_denied(call_raw_socket, false, "socket");
    assert_denied(map_code, false, "mmap");
    assert_denied(kill_parent, false, "tgkill");
    assert_denied(set_owner, false, "fcntl");
    assert_denied(enter_ring, false, "io_uring_enter");
    assert_denied(open_ring, true, "io_uring_setup");
    assert_denied(register_buffers, true, "io_uring_register");
}
END_TEST

START_TEST(a_blocked_signal_protects_nothing)
{
    uint64_t denied;
    int status = run_restricted(blocked, false, &denied);

    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
END_TEST

/* liburing sets the highest bit of the operation if the kernel permits a registered ring (Linux 6.3). */
static void use_ring(void)
{
    require(syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0) < 0 && errno == EBADF);
    require(syscall(SYS_io_uring_register, -1, IORING_UNREGISTER_RING_FDS, NULL, 1) < 0 && errno != ENOSYS);
    require(syscall(SYS_io_uring_register, -1, IORING_UNREGISTER_RING_FDS | 1u << 31, NULL, 1) < 0 && errno != ENOSYS);
}

START_TEST(rings_may_be_entered_by_their_loop)
{
    uint64_t denied;
    int status = run_restricted(use_ring, true, &denied);

    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

static void *thread_main(void *argument)
{
    return argument;
}

static void start_thread(void)
{
    pthread_t thread;
    int argument;
    void *result = NULL;

    require(pthread_create(&thread, NULL, thread_main, &argument) == 0);
    require(pthread_join(thread, &result) == 0 && result == &argument);
}

static void open_sockets(void)
{
    static const int families[] = {AF_INET, AF_INET6, AF_UNIX};

    for (size_t i = 0; i < 3; i++) {
        require(socket(families[i], SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) >= 0);
        require(socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0);
    }
}

static void use_files(void)
{
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    char byte;

    require(fd >= 0 && read(fd, &byte, 1) == 1 && fcntl(fd, F_GETFL) >= 0 && close(fd) == 0);
    require(syscall(SECCOMP_CACHESTAT, -1, NULL, NULL, 0) < 0);
}

static void fail_by_clone3(void)
{
    require(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
}

START_TEST(allowed_calls_work)
{
    assert_allowed(start_thread);
    assert_allowed(open_sockets);
    assert_allowed(use_files);
    assert_allowed(fail_by_clone3);
}
END_TEST

static void end_by_abort(void)
{
    abort();
}

START_TEST(abort_still_ends_by_its_own_signal)
{
    uint64_t denied;
    int status = run_restricted(end_by_abort, false, &denied);

    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_uint_eq(denied, 0);
}
END_TEST

static void assert_known(const char *name)
{
    ck_assert_msg(seccomp_syscall_resolve_name(name) != __NR_SCMP_ERROR, "%s is not a system call", name);
}

/* A misspelled name would be skipped like a call of another architecture. */
START_TEST(names_are_system_calls)
{
    for (const struct seccomp_group *group = seccomp_groups; group->calls; group++) {
        for (size_t i = 0; group->calls[i]; i++)
            assert_known(group->calls[i]);
    }
    for (const struct seccomp_row *row = seccomp_rows; row->call; row++) {
        assert_known(row->call);
        ck_assert_uint_le(row->count, 2);
        for (unsigned i = 0; i < row->count; i++)
            ck_assert_uint_eq(row->conditions[i].value & ~row->conditions[i].mask, 0);
    }
}
END_TEST

START_TEST(any_number_has_a_name)
{
    char name[64];

    sandbox_call_name(SYS_ptrace + 1, name, sizeof(name));
    ck_assert_str_eq(name, "ptrace");
    sandbox_call_name(100001, name, sizeof(name));
    ck_assert_str_eq(name, "number 100000");
    sandbox_call_name(UINT64_MAX, name, sizeof(name));
    ck_assert_uint_gt(strlen(name), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        denied_calls_end_the_process, a_blocked_signal_protects_nothing, rings_may_be_entered_by_their_loop,
        allowed_calls_work, abort_still_ends_by_its_own_signal, names_are_system_calls, any_number_has_a_name, NULL,
    };
    char note[160];

    return sandbox_probe(SANDBOX_SECCOMP, note, sizeof(note)) < 0 ? skip_program(note) : run_tests("seccomp", tests);
}
