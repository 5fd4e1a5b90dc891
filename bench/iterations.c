/*
 * A library for LD_PRELOAD that measures the iterations of an event loop: the time between the return of a wait for
 * events and the next wait, of every process and thread that waits by one of the functions below. The file that
 * ITERATIONS names has two histograms of uint64_t in the byte order of the machine: elapsed time, and CPU time of the
 * thread. A bucket is 10 us wide, and the last one has all longer iterations. bench/benchmark/iterations.py reads it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BUCKETS   20000
#define BUCKET_NS 10000
#define EXPORT    __attribute__((visibility("default")))

static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID};
enum { CLOCKS = sizeof(clocks) / sizeof(clocks[0]) };

static uint64_t (*histograms)[BUCKETS]; /* CLOCKS of them, shared by all processes; NULL: no file */
static _Thread_local uint64_t returned_ns[CLOCKS]; /* when the last wait returned; 0: there was none */

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("ITERATIONS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *map;

    if (fd < 0)
        return;
    map = mmap(NULL, CLOCKS * sizeof(*histograms), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    histograms = map == MAP_FAILED ? NULL : map;
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;

    return clock_gettime(clock, &now) < 0 ? 0 : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void iteration_end(void)
{
    for (unsigned i = 0; histograms && i < CLOCKS; i++) {
        uint64_t bucket = (now_ns(clocks[i]) - returned_ns[i]) / BUCKET_NS;

        if (returned_ns[i])
            __atomic_fetch_add(&histograms[i][bucket < BUCKETS ? bucket : BUCKETS - 1], 1, __ATOMIC_RELAXED);
    }
}

static int iteration_begin(int result)
{
    for (unsigned i = 0; histograms && i < CLOCKS; i++)
        returned_ns[i] = now_ns(clocks[i]);
    return result;
}

/* A wait with the parameters of the function that it replaces; liburing's types are opaque here. */
#define WAIT(name, parameters, arguments)                                   \
    EXPORT int name parameters;                                             \
    EXPORT int name parameters                                              \
    {                                                                       \
        static int (*next) parameters;                                      \
                                                                            \
        if (!next)                                                          \
            *(void **)(void *)&next = dlsym(RTLD_NEXT, #name);              \
        iteration_end();                                                    \
        return iteration_begin(next arguments);                             \
    }

WAIT(epoll_wait, (int fd, void *events, int most, int timeout_ms), (fd, events, most, timeout_ms))
WAIT(io_uring_submit_and_get_events, (void *ring), (ring))
WAIT(io_uring_submit_and_wait, (void *ring, unsigned count), (ring, count))
WAIT(io_uring_submit_and_wait_timeout, (void *ring, void **first, unsigned count, void *timeout, void *signals),
     (ring, first, count, timeout, signals))
