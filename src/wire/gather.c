/*
 * The vector alternates between the block's bytes and the parts; empty pieces of the block are left out.
 */
#include "wire/gather.h"

#include <stdlib.h>
#include <string.h>

struct gather *gather_create(void)
{
    struct gather *gather = malloc(sizeof *gather);

    if (!gather)
        return NULL;
    gather->count = gather->parts_in_flight = 0;
    gather->count_in_flight = 0;
    gather->length = 0;
    return gather;
}

void gather_destroy(struct wire_shared *shared, struct gather *gather)
{
    if (!gather)
        return;
    for (unsigned i = 0; i < gather->count; i++)
        file_view_release(shared, &gather->parts[i].view);
    free(gather);
}

void gather_append(struct gather *gather, uint32_t after, struct file_view *view, const char *bytes, uint32_t length)
{
    view->references++;
    gather->parts[gather->count++] = (struct gathered){after, length, bytes, view};
    gather->length += length;
}

static void gather_add(struct gather *gather, const char *bytes, size_t length)
{
    if (length > 0)
        gather->vector[gather->count_in_flight++] = (struct iovec){(char *)(uintptr_t)bytes, length};
}

void gather_begin(struct gather *gather, char *block, uint32_t from, uint32_t until)
{
    for (unsigned i = 0; i < gather->count; i++) {
        const struct gathered *part = &gather->parts[i];

        gather_add(gather, block + from, part->after - from);
        gather_add(gather, part->bytes, part->length);
        from = part->after;
    }
    gather_add(gather, block + from, until - from);
    gather->parts_in_flight = gather->count;
    gather->bytes_until = until;
}

size_t gather_sent(struct wire_shared *shared, struct gather *gather)
{
    unsigned sent = gather->parts_in_flight;
    size_t length = 0;

    for (int i = 0; i < gather->count_in_flight; i++)
        length += gather->vector[i].iov_len;
    for (unsigned i = 0; i < sent; i++) {
        gather->length -= gather->parts[i].length;
        file_view_release(shared, &gather->parts[i].view);
    }
    gather->count -= sent;
    memmove(gather->parts, gather->parts + sent, gather->count * sizeof gather->parts[0]);
    gather->parts_in_flight = 0;
    gather->count_in_flight = 0;
    return length;
}
