/* See tree.h. */
#include "tree.h"

#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char root[64];

char *in_root(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
    return path;
}

void tree_write_file(const char *name, const char *text)
{
    int fd = open(in_root(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

void make_root(void)
{
    snprintf(root, sizeof(root), "/tmp/sluice-root-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    tree_write_file("file", "hello");
    tree_write_file("empty", "");
    ck_assert_int_eq(mkdir(in_root("dir"), 0755), 0);
    ck_assert_int_eq(mkdir(in_root("dir/deep"), 0755), 0);
    tree_write_file("dir/inner", "inner");
    ck_assert_int_eq(mkfifo(in_root("fifo"), 0644), 0);
    ck_assert_int_eq(symlink("file", in_root("link")), 0);
    ck_assert_int_eq(symlink("../file", in_root("dir/up")), 0);
    ck_assert_int_eq(symlink("dir", in_root("dirlink")), 0);
    ck_assert_int_eq(symlink("..", in_root("dir/parent")), 0);
    ck_assert_int_eq(symlink("../../etc/passwd", in_root("escape")), 0);
    ck_assert_int_eq(symlink("..", in_root("above")), 0);
    ck_assert_int_eq(symlink("/etc/passwd", in_root("absolute")), 0);
    ck_assert_int_eq(symlink("loop", in_root("loop")), 0);
    ck_assert_int_eq(symlink("nowhere", in_root("dangling")), 0);
    ck_assert_int_eq(symlink("/proc/self/exe", in_root("magic")), 0);
}

void remove_root(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}
