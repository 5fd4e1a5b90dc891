/*
 * Sends the same file over loopback connections with encryption by the kernel and by user space. Only the sender's
 * calls are timed: the same thread discards the received records between these calls. The part of receiving that the
 * kernel performs inside the sender's calls costs the same for both.
 */
#include "tls/ktls_measure.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory_file.h"
#include "tls/aead_choice.h"
#include "tls/ktls_device.h"
#include "tls/tcp_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* BLOCK_RECORDS: the records that one send transmits, as in an output block. */
enum { ROUNDS = 8, BLOCK_RECORDS = 4, RECORD_ROOM = LIMIT_RECORD_PLAINTEXT + RECORD_OVERHEAD };

struct measurement {
    const struct ktls_calls *calls;
    struct cipher_context_cache *contexts;
    char *block;     /* BLOCK_RECORDS records */
    int file;        /* as long as the largest size */
    uint64_t end_us; /* CLOCK_MONOTONIC */
};

static uint64_t now_us(void)
{
    struct clock clock;

    clock_read(&clock);
    return clock.monotonic_us;
}

/* Discards received bytes without a copy. */
static void drain_pair(const struct tcp_pair *pair)
{
    while (recv(pair->peer, NULL, 1 << 20, MSG_TRUNC | MSG_DONTWAIT) > 0)
        ;
}

/* After a send that returned `sent`: makes room for the next. False if it failed, or time is up. */
static bool continue_after(const struct measurement *measurement, const struct tcp_pair *pair, ssize_t sent)
{
    struct pollfd writable = {.fd = pair->local, .events = POLLOUT};
    uint64_t now;

    if (sent == 0 || (sent < 0 && errno != EAGAIN))
        return false;
    drain_pair(pair);
    if (sent > 0)
        return true;
    now = now_us();
    return now < measurement->end_us && poll(&writable, 1, (int)((measurement->end_us - now) / 1000)) == 1;
}

static bool send_by_kernel(struct measurement *measurement, const struct tcp_pair *pair, struct record_key *key,
                           uint32_t length, uint64_t *out_ns)
{
    off_t offset = 0;
    uint64_t start = clock_thread_cpu_ns();
    bool good = ktls_enable(measurement->calls, pair->local, key) == KTLS_OK;
    uint64_t ns = clock_thread_cpu_ns() - start;

    while (good && offset < length) {
        start = clock_thread_cpu_ns();
        ssize_t sent = sendfile(pair->local, measurement->file, &offset, (size_t)(length - offset));
        ns += clock_thread_cpu_ns() - start;
        good = continue_after(measurement, pair, sent);
    }
    *out_ns = ns;
    return good;
}

/* Reads and seals records into the block. Returns the bytes of the block, or -errno. */
static ssize_t fill_block(struct measurement *measurement, struct record_key *key, struct cipher_context **context,
                          off_t *offset, uint32_t length)
{
    ssize_t filled = 0;

    for (int i = 0; i < BLOCK_RECORDS && *offset < length; i++) {
        char *record = measurement->block + filled;
        struct iovec plaintext = {record + record_head(key), LIMIT_RECORD_PLAINTEXT};
        ssize_t sealed = pread(measurement->file, plaintext.iov_base, plaintext.iov_len, *offset);

        if (sealed <= 0)
            return -EIO;
        *offset += sealed;
        plaintext.iov_len = (size_t)sealed;
        sealed = record_seal(measurement->contexts, key, context, RECORD_APPLICATION_DATA, &plaintext, 1, record);
        if (sealed < 0)
            return sealed;
        filled += sealed;
    }
    return filled;
}

static bool send_by_user(struct measurement *measurement, const struct tcp_pair *pair, struct record_key *key,
                         uint32_t length, uint64_t *out_ns)
{
    struct cipher_context *context = NULL;
    off_t offset = 0;
    uint64_t ns = 0;
    bool good = true;

    while (good && offset < length) {
        uint64_t start = clock_thread_cpu_ns();
        ssize_t left = fill_block(measurement, key, &context, &offset, length);
        const char *from = measurement->block;

        good = left > 0;
        ns += clock_thread_cpu_ns() - start;
        while (good && left > 0) {
            start = clock_thread_cpu_ns();
            ssize_t sent = send(pair->local, from, (size_t)left, MSG_DONTWAIT | MSG_NOSIGNAL);
            ns += clock_thread_cpu_ns() - start;
            good = continue_after(measurement, pair, sent);
            from += sent > 0 ? sent : 0;
            left -= sent > 0 ? sent : 0;
        }
    }
    record_release(measurement->contexts, &context);
    *out_ns = ns;
    return good;
}

/* One body over a connection of its own: a socket accepts a key once. Lowers `*best`, where 0 means none yet. */
static bool measure_body(struct measurement *measurement, bool kernel, const struct record_key *key, uint32_t length,
                         uint32_t *best)
{
    struct record_key own = *key;
    struct tcp_pair pair;
    uint64_t ns = 0;
    bool good;

    if (tcp_pair_open(&pair) < 0)
        return false;
    good = fcntl(pair.local, F_SETFL, O_NONBLOCK) == 0 &&
           (kernel ? send_by_kernel : send_by_user)(measurement, &pair, &own, length, &ns);
    tcp_pair_close(&pair);
    if (good && ns > 0 && ns < UINT32_MAX && (*best == 0 || ns < *best))
        *best = (uint32_t)ns;
    return good;
}

/* Measures from the smallest size up; a size is left out if it would probably not end in time. */
static void measure_cipher(struct measurement *measurement, const struct record_key *key, struct ktls_figures *figures)
{
    uint64_t took_us[KTLS_SIZES] = {0};

    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned size = 0; size < KTLS_SIZES; size++) {
            uint64_t start = now_us();
            uint64_t expected = round ? took_us[size] : size ? 4 * took_us[size - 1] : 0;

            if (start + expected > measurement->end_us)
                return;
            if (!measure_body(measurement, true, key, ktls_sizes[size], &figures->kernel_ns[size]) ||
                !measure_body(measurement, false, key, ktls_sizes[size], &figures->user_ns[size]))
                return;
            took_us[size] = now_us() - start;
        }
    }
}

static struct record_key key_for(const struct ktls_support *support, uint8_t cipher)
{
    bool newer = support->reason[1][cipher] == KTLS_OK;

    return (struct record_key){.version = newer ? RECORD_TLS_1_3 : RECORD_TLS_1_2, .cipher = cipher};
}

static void measure_ciphers(struct measurement *measurement, const struct ktls_support *support,
                            struct ktls_figures figures[RECORD_CIPHERS])
{
    uint64_t start = now_us();

    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        struct record_key key = key_for(support, cipher);

        measurement->end_us = start + (uint64_t)LIMIT_KTLS_MEASURE_MS * 1000 * cipher / (RECORD_CIPHERS - 1);
        if (ktls_supports(support, cipher))
            measure_cipher(measurement, &key, &figures[cipher]);
    }
}

static int make_file(void)
{
    static const char bytes[4096] = "a page";
    int file = memory_file_create("ktls_measure", MFD_CLOEXEC);

    for (uint32_t length = 0; file >= 0 && length < ktls_sizes[KTLS_SIZES - 1]; length += sizeof(bytes)) {
        if (write(file, bytes, sizeof(bytes)) != sizeof(bytes)) {
            close(file);
            file = -1;
        }
    }
    return file;
}

void ktls_measure(const struct ktls_calls *calls, const struct ktls_support *support, const struct aead_choice *aead,
                  struct ktls_figures out_figures[RECORD_CIPHERS])
{
    struct measurement measurement = {.calls = calls, .file = -1};

    memset(out_figures, 0, RECORD_CIPHERS * sizeof(out_figures[0]));
    if (!ktls_is_supported(support))
        return;
    measurement.contexts = cipher_context_cache_create(1, aead);
    measurement.block = malloc(BLOCK_RECORDS * RECORD_ROOM);
    measurement.file = make_file();
    if (measurement.contexts && measurement.block && measurement.file >= 0)
        measure_ciphers(&measurement, support, out_figures);
    if (measurement.file >= 0)
        close(measurement.file);
    free(measurement.block);
    cipher_context_cache_destroy(measurement.contexts);
}

void ktls_examine(const struct ktls_calls *calls, const struct ktls_support *support, const struct aead_choice *aead,
                  struct ktls_choice *out_choice)
{
    struct ktls_choice choice = {.offload = ktls_device_any_active()};

    ktls_measure(calls, support, aead, choice.figures);
    ktls_choose(&choice);
    *out_choice = choice;
}
