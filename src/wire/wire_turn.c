/*
 * A more urgent response cannot overtake queued bytes. Where several responses share a connection, the wire therefore
 * queues no more than the socket accepts without waiting, or one record (wire_limit_unsent).
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

enum { SMALL_QUEUE = LIMIT_RECORD_PLAINTEXT / 2 }; /* a response head is not sent without the DATA frame after it */

/* Unix sockets have no such option. */
static void set_unsent_max(struct wire *wire, uint32_t bytes, uint8_t doublings)
{
    if (setsockopt(wire->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes) < 0)
        return;
    wire->unsent_max = bytes;
    wire->unsent_doublings = doublings;
}

void wire_limit_unsent(struct wire *wire, uint32_t bytes)
{
    set_unsent_max(wire, bytes, 0);
}

/* Powers of two: a steady rate does not change the socket option. */
static uint8_t doublings_for(uint32_t min, uint64_t bytes)
{
    uint8_t doublings = 0;

    while (doublings < UNSENT_DOUBLINGS && (uint64_t)min << (doublings + 1) <= bytes)
        doublings++;
    return doublings;
}

/* Bytes acknowledged since the last call. The count of a kTLS socket may decrease: TCP counts record heads, too. */
static uint32_t newly_confirmed(struct wire *wire)
{
    uint32_t confirmed = (uint32_t)wire_bytes_confirmed(wire), bytes = confirmed - wire->confirmed;

    wire->confirmed = confirmed;
    return bytes <= INT32_MAX ? bytes : 0;
}

void wire_adapt_unsent(struct wire *wire)
{
    uint16_t now = (uint16_t)wire->shared->loop->clock.monotonic_ms, elapsed = (uint16_t)(now - wire->confirmed_ms);
    uint32_t min = wire->unsent_max >> wire->unsent_doublings;
    uint8_t doublings;

    if (elapsed < UNSENT_PERIOD_MS << wire->unsent_doublings)
        return;
    wire->confirmed_ms = now;
    doublings = doublings_for(min, (uint64_t)newly_confirmed(wire) * UNSENT_MS / elapsed);
    if (doublings != wire->unsent_doublings)
        set_unsent_max(wire, min << doublings, doublings);
}

static size_t queue_length(const struct wire *wire)
{
    size_t length = 0;

    for (const struct output_block *block = wire->first; block; block = block->next)
        length += block->filled - block->from + block->open + (block->gather ? block->gather->length : 0);
    return length;
}

/* The free part of the send buffer, which is small while the congestion window is small. */
static size_t send_buffer_room(const struct wire *wire)
{
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof memory;

    if (getsockopt(wire->fd, SOL_SOCKET, SO_MEMINFO, memory, &length) < 0)
        return SIZE_MAX;
    return size_sub_sat(memory[SK_MEMINFO_SNDBUF], memory[SK_MEMINFO_WMEM_QUEUED]);
}

/* The number of full records that the socket accepts without waiting. */
static uint8_t socket_records(const struct wire *wire)
{
    size_t memory = send_buffer_room(wire), room;
    int unsent = 0;

    (void)ioctl(wire->fd, SIOCOUTQNSD, &unsent);
    room = size_sub_sat(wire->unsent_max, unsent > 0 ? (size_t)unsent : 0);
    if (memory < room)
        room = memory;
    room /= LIMIT_RECORD_PLAINTEXT;
    return (uint8_t)(room < TURN_QUEUE_FULL ? room : TURN_QUEUE_FULL - 1);
}

static bool has_span(const struct wire *wire)
{
    return chunk_length(&wire->span) > 0 || wire->reading;
}

void wire_end_turn(struct wire *wire)
{
    size_t queued = queue_length(wire);

    if (wire->unsent_max == 0 || queued < SMALL_QUEUE || has_span(wire))
        return;
    if (op_idle(&wire->send) && wire->turn_room == TURN_ROOM_UNKNOWN)
        wire->turn_room = socket_records(wire);
    if (!op_idle(&wire->send) || queued + LIMIT_RECORD_PLAINTEXT > (size_t)wire->turn_room * LIMIT_RECORD_PLAINTEXT)
        wire->turn_room = TURN_QUEUE_FULL;
}

bool wire_turn_waits(struct wire *wire)
{
    wire->turn_room = TURN_ROOM_UNKNOWN;
    if (wire->unsent_max == 0 || wire->state != WIRE_OPEN || has_span(wire) || queue_length(wire) > 0)
        return false;
    wire->turn_room = socket_records(wire);
    if (wire->turn_room > 0)
        return false;
    wire->turn_room = TURN_QUEUE_FULL;
    return true;
}
