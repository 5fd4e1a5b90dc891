/*
 * HTTP/2 sessions: for any input and any division of it, the server's frames are well-formed and within the windows
 * (h2_client aborts otherwise), and every exchange finishes. The first byte of the input selects the size of the
 * pieces, the second one the room for output; the rest is sent after the preface, except frames of type 255. The first
 * payload byte of such a frame selects an event of the connection.
 */
#include "fuzz.h"

#include "h2_client.h"

#include <errno.h>

static const struct table_row rows[] = {
    {.path = "/hello", .status = 200, .body = "hello"},
    {.path = "/none", .status = 204},
    {.path = "/later", .status = 200, .body = "late", .behavior = TABLE_LATER},
    {.path = "/echo", .behavior = TABLE_ECHO},
    {.path = "/small", .behavior = TABLE_ECHO, .body_limit = 5},
    {.path = "/stream", .status = 200, .behavior = TABLE_STREAM},
    {.path = "/tunnel", .status = 101, .header = "Upgrade: websocket", .behavior = TABLE_STREAM, .body_limit = 3},
    {.path = "/cut", .status = 101, .body = "part", .behavior = TABLE_BROKEN},
    {.path = "/hints", .status = 200, .body = "x", .inform = "Link: </a>"},
    {.path = "/trailers", .status = 200, .body = "hi", .unknown_length = true, .trailer = "Digest: x"},
    {.path = "/broken", .status = 200, .body = "part", .behavior = TABLE_BROKEN},
    {.path = "/short", .status = 200, .body = "part", .behavior = TABLE_BROKEN, .declared_length = 5},
    {.path = NULL, .status = 404, .body = "?"},
};

enum { EVENT_FRAME = 255 };

static void open_client(struct h2_client *client, size_t piece, size_t room)
{
    struct session_settings *settings = &client->server.settings;

    h2_client_open(client, rows);
    client->quiet = true;
    client->piece = piece;
    client->server.room = room;
    settings->header_buffer_size = 100;
    settings->large_header_size = 200;
    settings->head_max = 500;
    settings->max_headers = 8;
    settings->keepalive_requests = 20;
    settings->http2.max_concurrent_streams = 5;
    settings->http2.chunk_size = 64;
    client->sent.length = client->preface_left; /* drops SETTINGS, which the input may contain */
}

static void raise_event(struct h2_client *client, unsigned event)
{
    struct table_server *server = &client->server;

    switch (event % 6) {
    case 0:
    case 1:
    case 2:
    case 3:
        table_server_signal(server, (enum session_signal)(event % 6));
        break;
    case 4:
        if (server->later && !server->reads)
            table_server_answer(server);
        break;
    default:
        server->clock.monotonic_ms += 500;
    }
    h2_client_read(client);
}

/* Feeds the input frame by frame. Feeds the rest unchanged if its frame is incomplete. */
static void feed_frames(struct h2_client *client, struct str input)
{
    while (input.length >= H2_FRAME_HEAD) {
        struct h2_frame frame = h2_frame_parse_head(input.data);
        size_t length = H2_FRAME_HEAD + frame.length;

        if (length > input.length)
            break;
        if (frame.type == EVENT_FRAME)
            raise_event(client, frame.length ? (unsigned char)input.data[H2_FRAME_HEAD] : 0);
        else
            h2_client_feed(client, str_slice(input, 0, length));
        input = str_skip(input, length);
    }
    h2_client_feed(client, input);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct h2_client client;

    if (size < 2 || size > 8192)
        return 0;
    open_client(&client, bytes[0] % 64, bytes[1] % 40);
    h2_client_flush(&client);
    feed_frames(&client, str_of((const char *)bytes + 2, size - 2));
    if (client.server.result >= 0 || client.server.result == -EAGAIN)
        h2_client_check_end(&client);
    if (table_server_phase(&client.server) == SESSION_IDLE)
        HOLDS(client.server.begun + client.server.rejected == client.server.finished);
    h2_client_close(&client);
    return 0;
}
