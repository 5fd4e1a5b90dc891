/*
 * Computes windows; other files send the frames.
 */
#include "http/h2/flow.h"

bool h2_window_add(int32_t *window, int64_t change)
{
    int64_t sum = *window + change;

    if (sum > H2_WINDOW_MAX || sum < INT32_MIN)
        return false;
    *window = (int32_t)sum;
    return true;
}

void h2_receive_window_init(struct h2_receive_window *window, uint32_t size)
{
    *window = (struct h2_receive_window){.size = size, .left = size};
}

bool h2_receive_window_take(struct h2_receive_window *window, uint32_t bytes)
{
    if (bytes > window->left)
        return false;
    window->left -= bytes;
    return true;
}

uint32_t h2_receive_window_release(struct h2_receive_window *window, uint32_t bytes)
{
    uint32_t due;

    window->released += bytes;
    if (window->released < window->size / 2 || window->released == 0)
        return 0;
    due = window->released;
    window->released = 0;
    window->left += due;
    return due;
}

void h2_receive_window_resize(struct h2_receive_window *window, uint32_t size)
{
    if (size <= window->size || size > H2_WINDOW_MAX)
        return;
    window->released += size - window->size;
    window->size = size;
}

bool h2_bdp_received(struct h2_bdp *bdp, uint32_t bytes)
{
    bool due = !bdp->measuring;

    bdp->bytes = due ? bytes : bdp->bytes + bytes;
    bdp->measuring = true;
    return due;
}

/* A window that was two thirds full during one round trip limited the sender: its size is doubled. */
uint32_t h2_bdp_window(struct h2_bdp *bdp, uint32_t size, uint32_t max)
{
    uint64_t bytes = bdp->bytes;

    bdp->measuring = false;
    if (3 * bytes < 2 * (uint64_t)size)
        return size;
    return size > max / 2 ? max : 2 * size;
}
