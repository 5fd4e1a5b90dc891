/*
 * Spans that are parts of a longer run of a file, as the frames of HTTP/2: sent from the mapped file, together with the
 * heads in memory between them, by one call for many spans.
 */
#include "wire/wire_queue.h"

#include <errno.h>
#include <unistd.h>

static bool takes_plaintext(const struct wire *wire)
{
    return wire->settings->sendfile && !wire->small_send_buffer &&
           (wire->sealing == SEALING_NONE || wire->sealing == SEALING_KERNEL);
}

/*
 * The last page of a run is copied. If the file is truncated within a page, the mapping has zeros after its end and
 * no fault; the read of the copy detects that (rule 13).
 */
static bool is_in_last_page(const struct wire *wire, uint64_t run)
{
    uint64_t page = (uint64_t)getpagesize(), end = (uint64_t)wire->span.file.at + run;

    return (uint64_t)wire->span.file.at + chunk_length(&wire->span) > (end - 1) / page * page;
}

static enum span_method choose_method_of_part(struct wire *wire, uint64_t run)
{
    struct file_view **view = &wire_transfer_of(wire, &wire->span)->view;
    int64_t at = wire->span.file.at;
    size_t length = (size_t)chunk_length(&wire->span);

    if (is_in_last_page(wire, run))
        return SPAN_COPIED;
    if (run < LIMIT_MAPPED_RUN && !file_view_has(*view, wire->span.file.fd, at, length))
        return SPAN_COPIED;
    return file_view_cover(wire->shared, view, wire->span.file.fd, at, length, run) ? SPAN_MAPPED : SPAN_DIRECT;
}

/*
 * At the end of a run its descriptor may be closed, and the next file of the same transfer, as that of the next slice,
 * may get its number. Parts that are queued keep the mapping.
 */
static void release_view_of_run(struct wire *wire, uint64_t length)
{
    struct file_view **view = &wire_transfer_of(wire, &wire->span)->view;

    if (*view && wire->span.file.run <= length)
        file_view_release(wire->shared, view);
}

enum span_method wire_span_choose_method(struct wire *wire, uint64_t whole)
{
    uint64_t length = chunk_length(&wire->span);

    if (wire->span.kind == CHUNK_FILE)
        release_view_of_run(wire, length);
    if (wire->span.kind != CHUNK_FILE || length >= LIMIT_COPIED_SPAN)
        return SPAN_DIRECT;
    if (wire->span.file.run >= length)
        return takes_plaintext(wire) ? choose_method_of_part(wire, wire->span.file.run) : SPAN_DIRECT;
    return whole < LIMIT_COPIED_SPAN ? SPAN_COPIED : SPAN_DIRECT;
}

int wire_span_gather(struct wire *wire)
{
    struct transfer *transfer = wire_transfer_of(wire, &wire->span);
    struct file_view *view = transfer->view;
    uint64_t length = chunk_length(&wire->span);
    struct output_block *block;

    if (wire_record_close(wire) < 0)
        return -EINVAL;
    block = wire_writable(wire, false);
    if (block && !block->gather)
        block->gather = gather_create();
    if (!block || !block->gather)
        return -ENOMEM;
    gather_append(block->gather, block->filled, view, view->bytes + (wire->span.file.at - view->at), (uint32_t)length);
    transfer->zero_copy += length;
    wire_count(wire, wire_path_of_span(wire), length);
    chunk_advance(&wire->span, length);
    return 0;
}
