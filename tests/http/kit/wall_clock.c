/*
 * Preloaded into a server (LD_PRELOAD): its wall clock differs from that of the machine by the number of seconds in the
 * file that the environment variable WALL_CLOCK names, eight bytes, which a test may change at any time.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *seconds;

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("WALL_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*seconds), PROT_READ, MAP_SHARED, fd, 0);

    if (mapped == MAP_FAILED)
        abort();
    seconds = mapped;
    close(fd);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);

    if (result == 0 && clock == CLOCK_REALTIME)
        out->tv_sec += *seconds;
    return result;
}
