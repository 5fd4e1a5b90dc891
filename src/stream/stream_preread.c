/*
 * `ssl_preread`: reads the ClientHello of a connection that is passed through, without a handshake.
 */
#include "base/saturate.h"
#include "stream/stream_private.h"

#include <errno.h>

/* Copies the values of the ClientHello that variables need. */
static void set_preread_variables(struct stream *stream, const struct client_hello *hello)
{
    static const char *const versions[] = {"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"};
    struct arena *arena = &stream->arena;

    stream->preread.name = arena_copy(arena, str_of(hello->name, hello->name_length));
    stream->preread.alpn = arena_copy(arena, str_of(hello->alpn, hello->alpn_length));
    if (hello->version)
        stream->preread.protocol = str_from(versions[hello->version - 0x0301]);
}

int stream_preread(struct stream *stream, struct str bytes, size_t *out_taken, struct client_hello *out_hello)
{
    size_t room = size_sub_sat((size_t)stream->conf->preread_size, stream->preread.input.length);
    struct str taken = str_slice(bytes, 0, room);
    int error;

    *out_taken = bytes.length;
    if (buffer_append(&stream->preread.input, taken) < 0)
        return 500;
    *out_taken = taken.length;
    error = client_hello_is_whole(&stream->preread.scan, buffer_str(&stream->preread.input))
                ? client_hello_read(buffer_str(&stream->preread.input), out_hello)
                : -EAGAIN;
    if (error == 0)
        set_preread_variables(stream, out_hello);
    if (error != -EAGAIN)
        return 0;
    if (taken.length < room)
        return -EAGAIN;
    stream_log_line(stream, LOG_INFO, "the preread buffer is full without a complete ClientHello", 0);
    return 400;
}
