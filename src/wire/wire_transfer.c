/*
 * Names and counters of the paths of output. The longest chunk determines a response's path: a short head in memory
 * does not change the path of a file.
 */
#include "wire/wire_queue.h"

#include "wire/file_view.h"

const char *wire_path_name(enum wire_path path)
{
    switch (path) {
    case PATH_PLAIN:
        return "plain";
    case PATH_PLAIN_SENDFILE:
        return "plain-sendfile";
    case PATH_PLAIN_SPLICE:
        return "plain-splice";
    case PATH_PLAIN_MAPPED:
        return "plain-mapped";
    case PATH_USER:
        return "user";
    case PATH_OPENSSL:
        return "openssl";
    case PATH_KTLS_SEND:
        return "ktls-send";
    case PATH_KTLS_SENDFILE:
        return "ktls-sendfile";
    case PATH_KTLS_SPLICE:
        return "ktls-splice";
    case PATH_KTLS_MAPPED:
        return "ktls-mapped";
    case PATH_NONE:
    case PATH_COUNT:
        break;
    }
    return "-";
}

const char *wire_reason_name(unsigned reason)
{
    if (reason < KTLS_REASONS)
        return ktls_reason_name((enum ktls_reason)reason);
    switch ((enum wire_reason)reason) {
    case REASON_SMALL:
        return "small";
    case REASON_USER_FASTER:
        return "user-faster";
    case REASON_PLAIN:
        return "plain";
    case REASON_BYTES:
        return "bytes";
    case REASON_SENDFILE_OFF:
        return "sendfile-off";
    case REASON_SUITE:
        return "suite";
    case REASON_FRAGMENT:
        return "max-fragment";
    case WIRE_REASONS:
        break;
    }
    return "-";
}

enum wire_path wire_path_of_bytes(const struct wire *wire)
{
    switch ((enum wire_sealing)wire->sealing) {
    case SEALING_NONE:
        return PATH_PLAIN;
    case SEALING_USER:
        return PATH_USER;
    case SEALING_KERNEL:
        return PATH_KTLS_SEND;
    case SEALING_OPENSSL:
    case SEALING_HANDSHAKE:
        break;
    }
    return PATH_OPENSSL;
}

enum wire_path wire_path_of_span(const struct wire *wire)
{
    bool kernel = wire->sealing == SEALING_KERNEL;

    if (wire->span_method == SPAN_MAPPED)
        return kernel ? PATH_KTLS_MAPPED : PATH_PLAIN_MAPPED;
    if (wire->span.kind == CHUNK_PIPE)
        return kernel ? PATH_KTLS_SPLICE : PATH_PLAIN_SPLICE;
    return kernel ? PATH_KTLS_SENDFILE : PATH_PLAIN_SENDFILE;
}

static bool by_kernel(unsigned path)
{
    return path == PATH_KTLS_SEND || path == PATH_KTLS_SENDFILE || path == PATH_KTLS_SPLICE ||
           path == PATH_KTLS_MAPPED;
}

void wire_account(struct transfer *transfer, enum wire_path path, unsigned reason, uint64_t bytes, uint64_t of)
{
    transfer->total += bytes;
    if (of < transfer->largest)
        return;
    transfer->largest = of;
    transfer->path = (uint8_t)path;
    transfer->reason = (uint8_t)reason;
}

void wire_count(struct wire *wire, enum wire_path path, uint64_t bytes)
{
    wire->shared->counters->bytes[path] += bytes;
}

unsigned wire_no_key_reason(const struct wire *wire)
{
    switch (tls_session_no_key(wire->tls)) {
    case TLS_NO_KEY_SUITE:
        return REASON_SUITE;
    case TLS_NO_KEY_FRAGMENT:
        return REASON_FRAGMENT;
    case TLS_NO_KEY_LIBRARY:
        break;
    }
    return KTLS_NO_KEY;
}

/* Chunks in memory are accounted as "small" one by one; the reason changes if their total exceeds the threshold. */
static unsigned final_reason(const struct wire *wire, const struct transfer *transfer)
{
    const struct tls_settings *settings;

    if (!wire->tls)
        return REASON_PLAIN;
    settings = tls_session_settings(wire->tls);
    if (by_kernel(transfer->path))
        return KTLS_OK;
    if (transfer->path == PATH_OPENSSL)
        return wire_no_key_reason(wire);
    if (transfer->reason != REASON_SMALL)
        return transfer->reason;
    if (settings->ktls == TLS_KTLS_OFF)
        return KTLS_OFF;
    return transfer->in_memory >= settings->ktls_threshold ? REASON_BYTES : REASON_SMALL;
}

struct transfer wire_transfer_end(struct wire *wire, struct transfer *transfer)
{
    struct transfer *current = transfer ? transfer : &wire->transfer;
    struct transfer ended = *current;
    struct wire_counters *counters = wire->shared->counters;

    if (ended.view) {
        file_view_release(wire->shared, &current->view);
        ended.view = NULL;
    }
    *current = (struct transfer){0};
    if (ended.path == PATH_NONE)
        return ended;
    ended.reason = (uint8_t)final_reason(wire, &ended);
    counters->transfers[ended.path]++;
    if (wire->tls && !by_kernel(ended.path))
        counters->declines[ended.reason]++;
    return ended;
}
