/*
 * Counters of bytes sent, acknowledged and received, for the owner's timeouts and for the end of a kTLS wire.
 */
#include "wire/wire_queue.h"

#include "base/saturate.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

uint64_t wire_unsent(const struct wire *wire, const struct transfer *transfer)
{
    return wire->span.transfer == transfer ? chunk_length(&wire->span) : 0;
}

/* Bytes in TCP that the peer has not acknowledged. */
static uint64_t in_tcp(const struct wire *wire)
{
    int bytes = 0;

    return wire->sealing == SEALING_KERNEL && ioctl(wire->fd, SIOCOUTQ, &bytes) == 0 ? (uint64_t)bytes : 0;
}

/* After a reset, TCP still reports unacknowledged bytes. */
static bool is_reset(const struct wire *wire)
{
    struct pollfd now = {.fd = wire->fd};

    return poll(&now, 1, 0) > 0 && (now.revents & (POLLERR | POLLHUP));
}

bool wire_unacknowledged(struct wire *wire)
{
    bool before = wire->unacknowledged_before;

    wire->unacknowledged_before = in_tcp(wire) > 0 && !is_reset(wire);
    return wire->unacknowledged_before || before;
}

uint64_t wire_bytes_sent(const struct wire *wire)
{
    if (wire->state == WIRE_LINGERING)
        return u64_sub_sat(wire->sent, in_tcp(wire)); /* TCP counts record heads and tags, too */
    if (op_idle(&wire->send))
        return wire->sent;
    if (wire->send.verb == OP_SENDFILE)
        return wire->sent + wire->send.file.progress;
    return wire->sent + (wire->send.verb == OP_SEND ? wire->send.send.progress : 0);
}

uint64_t wire_bytes_confirmed(const struct wire *wire)
{
    uint64_t sent = wire_bytes_sent(wire);
    int bytes = 0;

    if (wire->state == WIRE_LINGERING || ioctl(wire->fd, SIOCOUTQ, &bytes) < 0 || bytes < 0)
        return sent;
    return u64_sub_sat(sent, (uint64_t)bytes);
}

uint64_t wire_bytes_received(const struct wire *wire)
{
    return wire->received;
}
