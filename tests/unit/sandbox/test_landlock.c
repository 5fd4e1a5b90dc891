#include "sandbox/sandbox.h"

#include "../runner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/test_landlock.XXXXXX";
static struct sandbox_paths paths;
static struct sandbox_ports ports;
static char logged[512];

static void keep_line(void *owner, enum log_level level, struct str line)
{
    snprintf(logged, sizeof(logged), STR_FMT, STR_ARG(line));
}

static const char *below(const char *name)
{
    static char text[4][PATH_MAX];
    static unsigned next;
    char *path = text[next++ % 4];

    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name)
{
    int fd = open(below(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    ck_assert_int_ge(fd, 0);
    close(fd);
}

/* site/a, cache/, other/b, releases/1/c, current -> releases/1 */
static void build_tree(void)
{
    static const char *const directories[] = {"site",     "cache",      "cache/x",   "other",
                                              "releases", "releases/1", "releases/2"};

    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
        ck_assert_int_eq(mkdir(below(directories[i]), 0755), 0);
    write_file("site/a");
    write_file("other/b");
    write_file("releases/1/c");
    write_file("releases/2/c");
    ck_assert_int_eq(symlink("releases/1", below("current")), 0);
    paths = (struct sandbox_paths){0};
    ports = (struct sandbox_ports){0};
}

static void remove_tree(void)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    sandbox_paths_close(&paths);
    sandbox_ports_finish(&ports);
}

static void add(const char *name, enum sandbox_access access)
{
    ck_assert_int_eq(sandbox_paths_add(&paths, str_from(below(name)), access), 0);
}

/* Applies the part in a child process. Returns the result of `check`. */
static int in_sandbox(int (*check)(void))
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        struct log log = {.level = LOG_INFO, .sink = keep_line};

        const struct sandbox sandbox = {.parts = 1u << SANDBOX_LANDLOCK, .paths = &paths, .ports = &ports};

        if (sandbox_apply(&sandbox, &log) < 0)
            _exit(99);
        _exit(check());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* errno of open, or 0. */
static int open_error(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? errno : 0;
}

static int check_read(void)
{
    if (open_error(below("site/a"), O_RDONLY) != 0 || open_error(below("site"), O_RDONLY | O_DIRECTORY) != 0)
        return 1;
    if (open_error(below("other/b"), O_RDONLY) != EACCES || open_error("/etc/passwd", O_RDONLY) != EACCES)
        return 2;
    if (open_error(below("site/a"), O_WRONLY) != EACCES || open_error(below("site/new"), O_WRONLY | O_CREAT) != EACCES)
        return 3;
    if (unlink(below("site/a")) == 0 || open_error("/", O_RDONLY | O_DIRECTORY) != EACCES)
        return 4;
    if (open_error(below("site/../other/b"), O_RDONLY) != EACCES)
        return 5;
    return 0;
}

START_TEST(only_the_paths_are_readable)
{
    build_tree();
    add("site", SANDBOX_READ);
    ck_assert_int_eq(in_sandbox(check_read), 0);
    remove_tree();
}
END_TEST

static int check_write(void)
{
    int unnamed = open(below("cache"), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (open_error(below("cache/x/file"), O_RDWR | O_CREAT) != 0 || mkdir(below("cache/y"), 0700) < 0)
        return 1;
    if (rename(below("cache/x/file"), below("cache/y/file")) < 0 || truncate(below("cache/y/file"), 3) < 0)
        return 2;
    if (unlink(below("cache/y/file")) < 0 || rmdir(below("cache/y")) < 0)
        return 3;
    if (unnamed < 0 && errno != EOPNOTSUPP && errno != EISDIR)
        return 4;
    if (symlink("/etc/passwd", below("cache/link")) == 0 || mkfifo(below("cache/fifo"), 0600) == 0)
        return 5;
    return rename(below("cache/x"), below("site/x")) == 0 ? 6 : 0;
}

START_TEST(caches_are_writable)
{
    build_tree();
    add("site", SANDBOX_READ);
    add("cache", SANDBOX_WRITE);
    ck_assert_int_eq(in_sandbox(check_write), 0);
    remove_tree();
}
END_TEST

static int check_link(void)
{
    if (open_error(below("current/c"), O_RDONLY) != 0 || open_error(below("releases/2/c"), O_RDONLY) != 0)
        return 1;
    return open_error(below("other/b"), O_RDONLY) == EACCES ? 0 : 2;
}

/* Deployments switch a link to a new directory beside the old one. */
START_TEST(a_link_may_be_switched)
{
    build_tree();
    add("current", SANDBOX_READ);
    ck_assert_int_eq(in_sandbox(check_link), 0);
    remove_tree();
}
END_TEST

static int check_created(void)
{
    return open_error(below("other/b"), O_RDONLY);
}

START_TEST(a_missing_path_permits_its_nearest_directory)
{
    build_tree();
    add("other/later/www", SANDBOX_READ);
    ck_assert_int_eq(in_sandbox(check_created), 0);
    sandbox_paths_close(&paths);
    ck_assert_int_eq(sandbox_paths_add(&paths, STR("/no-such-directory/www"), SANDBOX_READ), 0);
    ck_assert_uint_eq(paths.count, 0);
    ck_assert_int_eq(in_sandbox(check_created), EACCES);
    remove_tree();
}
END_TEST

/* Thousands of locations name few directories. A path with ".." has no link, and permits no parent directory. */
START_TEST(a_directory_is_added_once)
{
    build_tree();
    add("site", SANDBOX_READ);
    add("site/../site/", SANDBOX_READ);
    add("./site/.", SANDBOX_READ);
    ck_assert_uint_eq(paths.count, 1);
    add("site", SANDBOX_WRITE);
    add("site/a", SANDBOX_READ);
    add("other", SANDBOX_READ);
    ck_assert_uint_eq(paths.count, 4);
    remove_tree();
}
END_TEST

/* A path left out for lack of descriptors would be denied later, without a message. */
START_TEST(missing_descriptors_are_an_error)
{
    struct rlimit limit, none;

    build_tree();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){0, limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(sandbox_paths_add(&paths, str_from(below("site")), SANDBOX_READ), -EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(paths.count, 0);
    add("site", SANDBOX_READ);
    ck_assert_uint_eq(paths.count, 1);
    remove_tree();
}
END_TEST

static int listener_fd;

/* errno of connect to the listener, or 0. */
static int connect_error(void)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (getsockname(listener_fd, (struct sockaddr *)&address, &length) < 0)
        return -1;
    return connect(fd, (struct sockaddr *)&address, length) < 0 ? errno : 0;
}

static int bind_error(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return 99; /* any port: for proxy_bind */
    fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_port = htons(21000);
    return bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
}

START_TEST(only_the_ports_are_reachable)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);

    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 4)
        SKIP_TEST("landlock of this kernel has no rules for ports (Linux 6.7)");
    build_tree();
    listener_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener_fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener_fd, 8), 0);
    ck_assert_int_eq(getsockname(listener_fd, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(sandbox_ports_add(&ports, 1), 0);
    ck_assert_int_eq(in_sandbox(connect_error), EACCES);
    ck_assert_int_eq(in_sandbox(bind_error), EACCES);
    ck_assert_int_eq(sandbox_ports_add(&ports, ntohs(address.sin_port)), 0);
    ck_assert_int_eq(sandbox_ports_add(&ports, ntohs(address.sin_port)), 0);
    ck_assert_uint_eq(ports.count, 2);
    ck_assert(sandbox_ports_permit(&ports, 1));
    ck_assert(sandbox_ports_permit(&ports, 0));
    ck_assert(!sandbox_ports_permit(&ports, 2));
    ck_assert_int_eq(in_sandbox(connect_error), 0);
    sandbox_ports_finish(&ports);
    ports.any = true;
    ck_assert(sandbox_ports_permit(&ports, 2));
    ck_assert_int_eq(in_sandbox(connect_error), 0);
    ck_assert_int_eq(in_sandbox(bind_error), EACCES);
    remove_tree();
}
END_TEST

static int check_log(void)
{
    return strstr(logged, "sandbox: landlock (version ") && strstr(logged, ", 1 paths, ") ? 0 : 1;
}

START_TEST(the_log_states_version_and_numbers)
{
    build_tree();
    add("site", SANDBOX_READ);
    ck_assert_int_eq(in_sandbox(check_log), 0);
    remove_tree();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        only_the_paths_are_readable, caches_are_writable, a_link_may_be_switched, the_log_states_version_and_numbers,
        a_missing_path_permits_its_nearest_directory, a_directory_is_added_once, missing_descriptors_are_an_error,
        only_the_ports_are_reachable, NULL,
    };
    char note[160];

    return sandbox_probe(SANDBOX_LANDLOCK, note, sizeof(note)) < 0 ? skip_program(note) : run_tests("landlock", tests);
}
