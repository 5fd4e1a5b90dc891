/*
 * A module that does things which no feature of sluice needs, as an attacker in control of a worker would:
 * `forbidden: "NAME VALUE"` runs the action NAME of the table below and responds with its result, 0 or an errno. A
 * worker does not become ready while the file exists that the environment variable FORBIDDEN_WAIT names. Built only
 * into the test server sluice-forbidden.
 */
#include "http/exchange.h"
#include "master/channel.h"
#include "server/connection_query.h"
#include "server/module.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

struct forbidden_conf {
    const struct template *action;
};

/* For run_read: the worker, and this module's settings in the configuration. */
static struct worker *own_worker;
static const struct forbidden_conf *own_conf;

static int result_of(long returned)
{
    return returned < 0 ? errno : 0;
}

static int close_result(int fd)
{
    int result = result_of(fd);

    if (fd >= 0)
        close(fd);
    return result;
}

static int run_open(const char *path)
{
    return close_result(open(path, O_RDONLY | O_CLOEXEC));
}

static int run_write(const char *path)
{
    return close_result(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int run_list(const char *path)
{
    return close_result(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int run_unlink(const char *path)
{
    return result_of(unlink(path));
}

static int run_execve(const char *value)
{
    char name[] = "true";
    char *const arguments[] = {name, NULL};

    return result_of(execve("/bin/true", arguments, arguments + 1));
}

static int run_fork(const char *value)
{
    long child = syscall(SYS_clone, 17 /* SIGCHLD */, NULL, NULL, NULL, NULL);

    if (child == 0)
        _exit(0);
    return result_of(child);
}

static int run_ptrace(const char *value)
{
    return result_of(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

static int run_mount(const char *value)
{
    return result_of(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int run_unshare(const char *value)
{
    return result_of(unshare(CLONE_NEWUSER));
}

static int run_kill(const char *value)
{
    return result_of(syscall(SYS_kill, getppid(), 0));
}

static int run_setuid(const char *value)
{
    return result_of(syscall(SYS_setuid, 0));
}

static int run_capset(const char *value)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{.effective = 1, .permitted = 1}};

    return result_of(syscall(SYS_capset, &head, sets));
}

static int run_raw(const char *value)
{
    return close_result(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static int run_netlink(const char *value)
{
    return close_result(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int run_code(const char *value)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? errno : result_of(munmap(page, 4096));
}

static int run_ring(const char *value)
{
    struct io_uring_params params = {0};

    return close_result((int)syscall(SYS_io_uring_setup, 4, &params));
}

static int run_ioctl(const char *value)
{
    char byte = '\n';

    return result_of(syscall(SYS_ioctl, 0, 0x5412UL /* TIOCSTI */, &byte));
}

static int run_connect(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result;

    address.sin_port = htons((uint16_t)atoi(port));
    result = fd < 0 ? errno : result_of(connect(fd, (const struct sockaddr *)&address, sizeof(address)));
    close(fd);
    return result;
}

static int run_listen(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result;

    address.sin_port = htons((uint16_t)atoi(port));
    result = fd < 0 ? errno : result_of(bind(fd, (const struct sockaddr *)&address, sizeof(address)));
    if (result == 0)
        result = result_of(listen(fd, 1));
    close(fd);
    return result;
}

static int run_loop(const char *value)
{
    volatile int result = 0;

    while (result == 0) {
    }
    return result;
}

static int read_conf(void *argument)
{
    const volatile struct forbidden_conf *conf = argument;

    while (conf->action) {
    }
    return 0;
}

/* Starts an operation that reads the configuration on a helper thread, and does not end. */
static int run_read(const char *value)
{
    static struct op op;

    worker_offload(own_worker, &op, read_conf, (void *)own_conf);
    return 0;
}

/* Sends bytes that are no message to the master, until it ends this process. */
static int run_channel(const char *value)
{
    for (int fd = 0; fd >= 0; fd = (fd + 1) % 1024) {
        int kind = 0;
        socklen_t length = sizeof(kind);

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &length) == 0 && kind == SOCK_SEQPACKET)
            (void)send(fd, "malformed", 9, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    return 0;
}

/* The worker's end of its channel; -1: none. */
static int channel_fd(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        int kind = 0;
        socklen_t length = sizeof(kind);

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &length) == 0 && kind == SOCK_SEQPACKET)
            return fd;
    }
    return -1;
}

/* Sends a packet when there is room. Returns 0 or an errno. */
static int send_packet(int fd, const void *packet, size_t length)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};

    while (send(fd, packet, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno != EAGAIN || poll(&room, 1, -1) < 0)
            return errno;
    }
    return 0;
}

/* Sends the master this many queries for all workers. */
static int run_query(const char *count)
{
    struct pollfd room = {.fd = channel_fd(), .events = POLLOUT};
    int error = 0;

    for (int i = atoi(count); i > 0 && error == 0; i--) {
        const struct channel_message query = {.kind = CHANNEL_QUERY, .index = 0x80000000u, .fd = -1};

        while ((error = channel_send(room.fd, &query)) == -EAGAIN && poll(&room, 1, -1) > 0) {
        }
    }
    return -error;
}

/* Responds with packets of each malformed kind. */
static void send_malformed(int fd)
{
    static struct query_response response = {.row_count = 1};

    for (size_t length = 1; length < query_response_size(1); length += 101)
        (void)send_packet(fd, &response, length);
    memset(&response.rows[0], 'x', sizeof(response.rows[0]));
    (void)send_packet(fd, &response, query_response_size(1));
    response.row_count = UINT32_MAX;
    (void)send_packet(fd, &response, sizeof(response));
    memset(&response, 0xff, sizeof(response));
    (void)send_packet(fd, &response, sizeof(response));
}

/* Responds without end with valid packets. */
static void send_endlessly(int fd)
{
    static struct query_response response = {.connections = UINT64_MAX / 2, .row_count = QUERY_ROWS};
    int error = 0;

    while (error == 0)
        error = send_packet(fd, &response, sizeof(response));
}

/* Waits for the next query that the master forwards, and responds to it. Logs before that it waits. */
static int run_respond(const char *how)
{
    struct pollfd message_arrives = {.fd = channel_fd(), .events = POLLIN};
    struct channel_message message = {.fd = -1};

    dprintf(STDERR_FILENO, "waits for a query\n");
    while (message.kind != CHANNEL_RESPOND) {
        int result;

        if (message.fd >= 0)
            close(message.fd);
        if (poll(&message_arrives, 1, -1) < 0 || (result = channel_receive(message_arrives.fd, &message)) <= 0)
            return EPIPE;
    }
    if (strcmp(how, "malformed") == 0)
        send_malformed(message.fd);
    else
        send_endlessly(message.fd);
    return result_of(close(message.fd));
}

/* Fills all memory that this process shares with others. */
static int run_overwrite(const char *byte)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], access[8], kind[64];
    uintptr_t from, to;
    int count = 0;

    while (maps && fgets(line, sizeof(line), maps)) {
        /* The memory of an io_uring ring is not shared with other processes. */
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s %*s %*s %*s %63s", &from, &to, access, kind) != 4 ||
            strcmp(access, "rw-s") != 0 || strcmp(kind, "/dev/zero") != 0)
            continue;
        memset((void *)from, atoi(byte), to - from);
        count++;
    }
    return count > 0 ? 0 : ENOENT;
}

static int wait_while_file_exists(struct worker *worker, void **out_state)
{
    const char *path = getenv("FORBIDDEN_WAIT");

    while (path && access(path, F_OK) == 0)
        usleep(10000);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(const char *value);
} actions[] = {
    {"open", run_open}, {"write", run_write}, {"list", run_list}, {"unlink", run_unlink},
    {"execve", run_execve}, {"clone", run_fork}, {"ptrace", run_ptrace}, {"mount", run_mount},
    {"unshare", run_unshare}, {"kill", run_kill}, {"setuid", run_setuid}, {"capset", run_capset},
    {"socket", run_raw}, {"netlink", run_netlink}, {"mmap", run_code}, {"io_uring_setup", run_ring},
    {"ioctl", run_ioctl}, {"connect", run_connect}, {"listen", run_listen},
    {"loop", run_loop}, {"read", run_read}, {"channel", run_channel}, {"overwrite", run_overwrite},
    {"query", run_query}, {"respond", run_respond},
};

static int run(struct str action)
{
    struct str name = str_cut(&action, ' ');
    char value[512];

    if (action.length >= sizeof(value))
        return ENAMETOOLONG;
    memcpy(value, action.data, action.length);
    value[action.length] = '\0';
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (str_equal(name, str_from(actions[i].name)))
            return actions[i].run(value);
    }
    abort(); /* a mistake in the test */
}

static enum outcome forbidden_handler(struct exchange *x, const void *conf, void *state)
{
    const struct forbidden_conf *own = conf;
    struct str action = exchange_eval(x, own->action);
    struct str text;

    if (!action.data)
        return exchange_error_response(x, 500);
    own_worker = exchange_worker(x);
    own_conf = own;
    text = arena_printf(&x->arena, "%d", run(action));
    exchange_error_response(x, 200);
    x->response.body = text.data ? body_bytes(&x->arena, text) : NULL;
    return x->response.body ? OUTCOME_RESPONDED : exchange_error_response(x, 500);
}

static bool forbidden_idle(const void *conf)
{
    return !((const struct forbidden_conf *)conf)->action;
}

static const struct directive directives[] = {
    {.name = "forbidden",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_TEMPLATE,
     .offset = offsetof(struct forbidden_conf, action),
     .help = "Runs an action that the sandbox must prevent."},
    {0},
};

static const struct module module_forbidden = {
    .name = "forbidden",
    .directives = directives,
    .conf_size = sizeof(struct forbidden_conf),
    .idle = forbidden_idle,
    .handler = forbidden_handler,
    .worker_start = wait_while_file_exists,
};

extern const struct module module_return, module_static, module_gateway, module_proxy, module_limit_req,
    module_limit_conn, module_control, module_otel;

/* Takes the place of the generated table. */
const struct module *const module_table[] = {
    &module_otel, &module_limit_req, &module_limit_conn, &module_forbidden, &module_return, &module_gateway,
    &module_proxy, &module_static, &module_control, NULL,
};
