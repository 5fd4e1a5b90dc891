/*
 * Decides, when the owner adds a file span, whether the kernel encrypts it (rule 4), and passes the key to the kernel
 * when nothing is queued or in flight any more (rule 5). A response head in an open record is passed on as plaintext,
 * so that head and body share the kernel's first record.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "tls/ktls_choice.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

/* A send buffer of fewer records or segments sets small_send_buffer. A small peer window makes segments small. */
enum { LARGE_BUFFER_RECORDS = 4, LARGE_BUFFER_SEGMENTS = 8 };

/* Total bytes of the transfer that the span belongs to. */
static uint64_t transfer_length(const struct wire *wire)
{
    uint64_t length = chunk_length(&wire->span);

    if (wire->span.kind == CHUNK_PIPE)
        return wire->span.pipe.whole;
    return wire->span.file.whole > length ? wire->span.file.whole : length;
}

/* The reason, by the probe or the measurement, not to use kTLS for a body of `length` bytes; KTLS_OK: none. */
static unsigned connection_ktls_reason(const struct wire *wire, const struct tls_settings *settings, uint64_t length)
{
    const struct ktls_choice *choice = settings->ktls == TLS_KTLS_AUTO ? wire->shared->ktls_choice : NULL;
    unsigned reason = wire->shared->ktls->reason[wire->key.version == RECORD_TLS_1_3][wire->key.cipher];

    if (reason == KTLS_OK && choice && !ktls_choice_is_kernel(choice, wire->key.cipher, length))
        return REASON_USER_FASTER;
    return reason;
}

/* The reason not to use kTLS for a response of `length` bytes; KTLS_OK: none. */
static unsigned wire_ktls_reason(const struct wire *wire, uint64_t length)
{
    const struct tls_settings *settings;

    switch ((enum wire_sealing)wire->sealing) {
    case SEALING_NONE:
        return REASON_PLAIN;
    case SEALING_KERNEL:
        return KTLS_OK;
    case SEALING_OPENSSL:
    case SEALING_HANDSHAKE:
        return wire_no_key_reason(wire);
    case SEALING_USER:
        break;
    }
    settings = tls_session_settings(wire->tls);
    if (settings->ktls == TLS_KTLS_OFF)
        return KTLS_OFF;
    if (length < settings->ktls_threshold)
        return REASON_SMALL;
    if (wire->ktls_failure)
        return wire->ktls_failure;
    if (!wire->settings->sendfile)
        return REASON_SENDFILE_OFF;
    if (!wire->shared->ktls)
        return KTLS_NOT_BUILT;
    return connection_ktls_reason(wire, settings, length);
}

bool wire_may_splice(const struct wire *wire)
{
    unsigned reason = wire_ktls_reason(wire, UINT64_MAX);

    return wire->settings->sendfile && (reason == KTLS_OK || reason == REASON_PLAIN);
}

static enum wire_path path_of_span(const struct wire *wire)
{
    bool by_pages = wire_span_is_direct(wire) || wire->span_method == SPAN_MAPPED;

    return by_pages ? wire_path_of_span(wire) : wire_path_of_bytes(wire);
}

/* A copied part of a transfer does not determine its path. */
static void account_span(struct wire *wire, unsigned reason)
{
    uint64_t length = chunk_length(&wire->span);

    wire_account(wire_transfer_of(wire, &wire->span), path_of_span(wire), reason, length,
                 wire->span_method == SPAN_COPIED ? length : transfer_length(wire));
}

void wire_choose_sealing(struct wire *wire)
{
    unsigned reason = wire_ktls_reason(wire, transfer_length(wire));

    wire->promoting = reason == KTLS_OK && wire->sealing == SEALING_USER;
    wire->span_method = SPAN_DIRECT;
    if (wire->promoting)
        return;
    wire->span_method = (uint8_t)wire_span_choose_method(wire, transfer_length(wire));
    if (wire->span_method == SPAN_DIRECT && !wire->settings->sendfile)
        wire->span_method = SPAN_READ;
    account_span(wire, reason);
}

static int option_of(int fd, int level, int name)
{
    int value = 0;
    socklen_t length = sizeof(value);

    return getsockopt(fd, level, name, &value, &length) < 0 ? 0 : value;
}

/* Queried once: the kernel enlarges send buffers unless their size was set explicitly. */
static bool is_small_send_buffer(int fd)
{
    int size = option_of(fd, SOL_SOCKET, SO_SNDBUF);

    return size < LARGE_BUFFER_RECORDS * LIMIT_RECORD_PLAINTEXT ||
           size < LARGE_BUFFER_SEGMENTS * option_of(fd, IPPROTO_TCP, TCP_MAXSEG);
}

/* The kernel has accepted the key: from now on the socket accepts plaintext. Cannot fail. */
static void set_kernel_sealing(struct wire *wire)
{
    struct output_block *block = wire->first;
    size_t head = wire_record_head(wire);
    struct record_key counted = {
        .version = wire->key.version, .cipher = wire->key.cipher, .sequence = wire->key.sequence};

    if (block) {
        block->from = block->filled + (uint32_t)head;
        block->filled = block->from + block->open;
        block->open = 0;
    }
    wire->sealing = SEALING_KERNEL;
    wire->small_send_buffer = is_small_send_buffer(wire->fd);
    record_release(wire->shared->cipher_contexts, &wire->cipher_context);
    record_key_wipe(&wire->key); /* the kernel has a copy; only the sequence number is used */
    wire->key = counted;
    wire->shared->counters->promotions++;
}

bool wire_promote(struct wire *wire)
{
    enum ktls_reason reason = ktls_enable(wire->shared->ktls_calls, wire->fd, &wire->key);

    wire->promoting = false;
    if (reason == KTLS_OK) {
        set_kernel_sealing(wire);
    } else {
        wire->ktls_failure = (uint8_t)reason;
        log_write(wire->shared->log, LOG_INFO, "kTLS: the kernel refused (%s), encryption continues in user space, "
                                               "fd %d",
                  ktls_reason_name(reason), wire->fd);
    }
    account_span(wire, reason);
    return reason == KTLS_OK;
}
