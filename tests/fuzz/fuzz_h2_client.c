/*
 * The client side of HTTP/2: for any input and any division of it, its frames are well-formed (h2_origin aborts
 * otherwise), each stream ends once, and a body has its Content-Length. The first byte of the input selects the size of
 * the pieces, the second one the room for output; the rest is received after SETTINGS.
 */
#include "fuzz.h"

#include "h2_origin.h"

#include <errno.h>

static void open_streams(struct h2_origin *origin)
{
    h2_origin_request(origin, 0, "GET", 0, "", 0);
    h2_origin_request(origin, 1, "POST", 5, "hello", 0);
    h2_origin_request(origin, 2, "POST", BODY_LENGTH_UNKNOWN, "part", -EAGAIN);
    h2_origin_request(origin, 3, "HEAD", 0, "", 0);
    h2_origin_turn(origin);
}

static void check_stream(const struct h2_client_stream *stream)
{
    if (stream->end == H2_CLIENT_WHOLE) {
        HOLDS(stream->head_seen && stream->final_status >= 200 && stream->final_status <= 599);
        HOLDS(stream->bodiless || stream->content_length == BODY_LENGTH_UNKNOWN ||
              stream->content_length == stream->received);
    }
    HOLDS(stream->finished == (stream->end != H2_CLIENT_OPEN));
    HOLDS(!stream->finished || stream->input.length == 0);
    HOLDS(stream->end != H2_CLIENT_MALFORMED || stream->fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct h2_origin origin;
    size_t piece;
    struct str rest;

    if (size < 2 || size > 8192)
        return 0;
    piece = 1 + bytes[0] % 64;
    h2_origin_open(&origin);
    origin.quiet = true;
    origin.room = bytes[1] ? bytes[1] : 1;
    open_streams(&origin);
    h2_origin_script(&origin, "settings 4=10");
    for (rest = str_of((const char *)bytes + 2, size - 2); rest.length > 0; rest = str_skip(rest, piece)) {
        h2_origin_feed(&origin, str_slice(rest, 0, piece));
        origin.clock.monotonic_ms += 10;
    }
    for (unsigned i = 0; i < H2_ORIGIN_STREAMS; i++)
        check_stream(&origin.streams[i]);
    h2_origin_close(&origin);
    return 0;
}
