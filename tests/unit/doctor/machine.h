/* A simulated machine: a directory contains its files of /proc, /sys and /etc. */
#ifndef TEST_MACHINE_H
#define TEST_MACHINE_H

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *place)
{
    return remove(path);
}

static inline void machine_remove(void)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void machine_make(void)
{
    strcpy(root, "/tmp/sluice-doctor-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

/* Writes a file, and creates its directories. text NULL: creates nothing. */
static inline void write_host_file(const char *path, const char *text)
{
    char name[256];
    int fd;

    if (!text)
        return;
    snprintf(name, sizeof(name), "%s%s", root, path);
    for (char *slash = strchr(name + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        ck_assert(mkdir(name, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

#endif
