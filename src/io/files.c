/*
 * Reads files from the page cache, and on helper threads. Common to all backends.
 */
#include "io/files.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "io/backend.h"
#include "io/helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FETCH_STEP      (16 * 1024)
#define READAHEAD_PIECE (128 * 1024)
#define PAGE            4096 /* the smallest page size */
#define NR_CACHESTAT    451 /* Linux 6.5; older headers do not define it */

static ssize_t read_parts(int file, int64_t at, const struct iovec *parts, int count, int flags)
{
    ssize_t result;

    do {
        result = preadv2(file, parts, count, at, flags);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

static ssize_t read_nowait(int file, int64_t at, char *into, size_t length)
{
    return read_parts(file, at, &(struct iovec){into, length}, 1, RWF_NOWAIT);
}

static ssize_t read_plain(int file, int64_t at, char *into, size_t length)
{
    return read_parts(file, at, &(struct iovec){into, length}, 1, 0);
}

/* True for file systems without RWF_NOWAIT: tmpfs before 6.6, whose pages are in memory, and some overlays. */
static bool nowait_missing(ssize_t result)
{
    return result == -EOPNOTSUPP || result == -ENOSYS;
}

ssize_t loop_read_cached(int file, int64_t at, const struct iovec *parts, int count)
{
    ssize_t result = read_parts(file, at, parts, count, RWF_NOWAIT);

    return nowait_missing(result) ? read_parts(file, at, parts, count, 0) : result;
}

/* In pieces: the kernel shortens a request that exceeds what it reads ahead on that device, usually 128 KiB. */
static void read_ahead(int file, uint64_t at, uint64_t length)
{
    for (uint64_t piece; length > 0; at += piece, length -= piece) {
        piece = length < READAHEAD_PIECE ? length : READAHEAD_PIECE;
        (void)readahead(file, (off64_t)at, (size_t)piece);
    }
}

/*
 * Reads until `length`, the end, or an error. The kernel's own readahead is switched off for this descriptor: a read of
 * the loop's thread would start it, which takes up to a millisecond there.
 */
static int read_work(struct op *op)
{
    (void)posix_fadvise(op->file.fd, 0, 0, POSIX_FADV_RANDOM);
    read_ahead(op->file.fd, (uint64_t)op->file.at, op->file.ahead_kib * 1024u);
    while (op->file.progress < op->file.length) {
        ssize_t count = read_plain(op->file.fd, op->file.at + (int64_t)op->file.progress,
                                   op->file.into + op->file.progress, (size_t)(op->file.length - op->file.progress));

        if (count < 0)
            return (int)count;
        if (count == 0)
            break;
        op->file.progress += (uint64_t)count;
    }
    return (int)op->file.progress;
}

void read_submit(struct loop *loop, struct op *op)
{
    if (op->file.length > INT_MAX)
        op->file.length = INT_MAX;
    helpers_submit(loop, op, read_work);
}

static uint64_t next_byte(const struct op *op)
{
    return (uint64_t)op->file.at + op->file.progress;
}

static uint64_t window_length(const struct op *op, uint64_t max)
{
    uint64_t left = u64_sub_sat(op->file.length, op->file.progress);

    return left < max ? left : max;
}

/*
 * False if pages of the window are missing. They count as present where cachestat(2) fails: before Linux 6.5, and on
 * newer kernels (6.18) for a file that the process neither owns nor may write.
 */
static bool all_cached(int file, uint64_t at, uint64_t length)
{
    uint64_t page = (uint64_t)getpagesize();
    struct {
        uint64_t at, length;
    } range = {at, length};
    struct {
        uint64_t cached, dirty, written, evicted, recently_evicted;
    } found;

    if (syscall(NR_CACHESTAT, file, &range, &found, 0) < 0)
        return true;
    return found.cached >= (at + length - 1) / page - at / page + 1;
}

/* The number of cached bytes of the window. Each page is probed, since cachestat also counts pages under readahead. */
static uint64_t cached_bytes(const struct op *op, uint64_t length)
{
    uint64_t at = next_byte(op);
    uint64_t cached = 0;
    char byte;

    if (!all_cached(op->file.fd, at, length))
        return 0;
    while (cached < length) {
        uint64_t end = cached + PAGE < length ? cached + PAGE : length;

        if (read_nowait(op->file.fd, (int64_t)(at + end - 1), &byte, 1) == -EAGAIN)
            break;
        cached = end;
    }
    return cached;
}

/*
 * Probes every page of a file that a helper thread has read before, since the kernel may be evicting or loading pages
 * of it; not more pages than an iteration may send. If they are evicted each time before they are sent, sendfile itself
 * reads small steps from disk, so that the transfer completes.
 */
static bool probe_fetched(struct op *op)
{
    uint64_t cached = cached_bytes(op, window_length(op, LIMIT_ITERATION_FETCHED_BYTES));

    if (cached == 0 && op->file.fetches < LIMIT_FETCHES)
        return false;
    op->file.cached_until = next_byte(op) + (cached > 0 ? cached : window_length(op, FETCH_STEP));
    return true;
}

bool loop_is_cached(int file, int64_t at, uint64_t length)
{
    ssize_t result;
    char byte;

    if (length == 0)
        return true;
    result = read_nowait(file, at, &byte, 1);
    if (result > 0)
        result = read_nowait(file, at + (int64_t)(length - 1), &byte, 1);
    return nowait_missing(result) || (result > 0 && all_cached(file, (uint64_t)at, length));
}

/*
 * The window grows with the bytes already sent, up to LIMIT_CACHED_WINDOW: a large cached file then costs one call
 * per megabyte.
 */
bool file_probe(struct op *op)
{
    uint64_t at = next_byte(op);
    uint64_t sent = op->file.progress;
    uint64_t max = sent < LIMIT_UNCACHED_WINDOW ? LIMIT_UNCACHED_WINDOW : sent;
    uint64_t length = window_length(op, max > LIMIT_CACHED_WINDOW ? LIMIT_CACHED_WINDOW : max);
    ssize_t result = 1;
    char byte;

    if (op->file.fetches > 0)
        return probe_fetched(op);
    if (op->file.cached_until != at)
        result = read_nowait(op->file.fd, (int64_t)at, &byte, 1);
    if (result > 0)
        result = read_nowait(op->file.fd, (int64_t)(at + length - 1), &byte, 1);
    if (result == -EAGAIN)
        return false;
    if (nowait_missing(result)) {
        op->file.cached_until = UINT64_MAX;
        return true;
    }
    if (result > 0 && !all_cached(op->file.fd, at, length))
        return false;
    op->file.cached_until = at + length;
    return true;
}

/*
 * Requests readahead, then waits for the window by reading one byte at the end of each FETCH_STEP, so that the window
 * is not copied.
 */
int file_read_window(struct op *op)
{
    uint64_t at = next_byte(op);
    uint64_t ahead = window_length(op, 2 * LIMIT_UNCACHED_WINDOW) + op->file.ahead_kib * 1024u;
    uint64_t length = ahead < LIMIT_UNCACHED_WINDOW ? ahead : LIMIT_UNCACHED_WINDOW;
    char byte;

    read_ahead(op->file.fd, at, ahead < 2 * LIMIT_UNCACHED_WINDOW ? ahead : 2 * LIMIT_UNCACHED_WINDOW);
    for (uint64_t done = 0; done < length;) {
        done += length - done < FETCH_STEP ? length - done : FETCH_STEP;
        if (read_plain(op->file.fd, (int64_t)(at + done - 1), &byte, 1) <= 0)
            break; /* sendfile reports the same end of file or error */
    }
    return 0;
}
