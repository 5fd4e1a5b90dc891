/*
 * The chunked decoder. It copies no body bytes, and copies a size line only if the line arrives in pieces.
 */
#include "http/h1_frame.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "http/h1_line_ends.h"
#include "http/h1_parse.h"

#include <errno.h>

void h1_chunked_init(struct h1_chunked *chunked, struct arena *arena, struct headers *trailers,
                     unsigned max_trailers, bool underscores)
{
    *chunked = (struct h1_chunked){
        .arena = arena, .trailers = trailers, .max_trailers = max_trailers, .underscores = underscores};
    buffer_init(&chunked->pending, LIMIT_TRAILER_BYTES);
}

void h1_chunked_finish(struct h1_chunked *chunked)
{
    buffer_finish(&chunked->pending);
}

static struct str skip_blanks(struct str s)
{
    size_t blanks = 0;

    while (blanks < s.length && (s.data[blanks] == ' ' || s.data[blanks] == '\t'))
        blanks++;
    return str_skip(s, blanks);
}

/* Cuts a token or a quoted-string (RFC 9110 5.6.4) off the front. */
static bool next_word(struct str *rest, bool may_be_quoted)
{
    size_t at = 0;

    if (may_be_quoted && rest->length && rest->data[0] == '"') {
        for (at = 1; at < rest->length && rest->data[at] != '"'; at++)
            at += rest->data[at] == '\\';
        if (at >= rest->length || !h1_is_value(str_slice(*rest, 0, at)))
            return false;
        *rest = str_skip(*rest, at + 1);
        return true;
    }
    while (at < rest->length && h1_is_token(str_of(rest->data + at, 1)))
        at++;
    *rest = str_skip(*rest, at);
    return at > 0;
}

/* *( BWS ";" BWS name [ BWS "=" BWS value ] ) (RFC 9112 7.1.1). The meaning is ignored, the syntax is validated. */
static bool extensions_are_valid(struct str rest)
{
    while (rest.length) {
        struct str behind;

        rest = skip_blanks(rest);
        if (rest.length == 0 || rest.data[0] != ';')
            return false;
        rest = skip_blanks(str_skip(rest, 1));
        if (!next_word(&rest, false))
            return false;
        behind = skip_blanks(rest);
        if (behind.length == 0 || behind.data[0] != '=')
            continue;
        rest = skip_blanks(str_skip(behind, 1));
        if (!next_word(&rest, true))
            return false;
    }
    return true;
}

int h1_chunk_line_parse(struct str line, uint64_t *out_size, size_t *out_extension)
{
    uint64_t size = 0;
    size_t digits = 0;
    int digit;

    while (digits < line.length && (digit = str_hex_digit(line.data[digits])) >= 0) {
        if (size > (uint64_t)INT64_MAX >> 4)
            return -EBADMSG;
        size = size << 4 | (uint64_t)digit;
        digits++;
    }
    if (digits == 0 || !extensions_are_valid(str_skip(line, digits)))
        return -EBADMSG;
    *out_size = size;
    *out_extension = line.length - digits;
    return 0;
}

/*
 * Cuts a line with its CRLF (or LF if allowed) off *in. An incomplete line is collected in `pending` (from `from`
 * on). 1: *out_line is the line without its end, valid until pending changes; 0: incomplete; -EBADMSG, -ENOMEM.
 */
static int next_line(struct h1_chunked *chunked, struct str *in, size_t from, size_t longest,
                     struct str *out_line)
{
    ssize_t feed = str_find(*in, '\n');
    struct str piece = feed < 0 ? *in : str_slice(*in, 0, (size_t)feed + 1);
    struct str line = piece;

    if (size_sub_sat(chunked->pending.length, from) + piece.length > longest)
        return -EBADMSG;
    if (feed < 0 || chunked->state == CHUNKED_TRAILERS || chunked->pending.length > from) {
        int error = buffer_append(&chunked->pending, piece);

        if (error)
            return error == -ENOMEM ? error : -EBADMSG;
        line = str_skip(buffer_str(&chunked->pending), from);
    }
    *in = str_skip(*in, piece.length);
    if (feed < 0)
        return 0;
    if (!str_ends(line, STR("\r\n")) && !chunked->line_feeds)
        return -EBADMSG;
    *out_line = str_slice(line, 0, line.length - (str_ends(line, STR("\r\n")) ? 2 : 1));
    return 1;
}

static int next_size(struct h1_chunked *chunked, struct str *in)
{
    struct str line;
    size_t extension;
    int result = next_line(chunked, in, 0, LIMIT_CHUNK_LINE, &line);

    if (result <= 0)
        return result ? result : -EAGAIN;
    result = h1_chunk_line_parse(line, &chunked->left, &extension);
    chunked->pending.length = 0;
    if (result)
        return -EBADMSG;
    chunked->extension_bytes += extension;
    if (chunked->extension_bytes > LIMIT_CHUNK_EXTENSIONS)
        return -EBADMSG;
    chunked->state = chunked->left ? CHUNKED_CONTENT : CHUNKED_TRAILERS;
    return 0;
}

/* Expects the CRLF after a chunk; `left` counts its bytes received. */
static int next_content_end(struct h1_chunked *chunked, struct str *in)
{
    while (chunked->left < 2) {
        if (in->length == 0)
            return -EAGAIN;
        if (chunked->left == 0 && chunked->line_feeds && in->data[0] == '\n')
            chunked->left = 1;
        if (in->data[0] != "\r\n"[chunked->left])
            return -EBADMSG;
        *in = str_skip(*in, 1);
        chunked->left++;
    }
    chunked->state = CHUNKED_SIZE;
    return 0;
}

/*
 * Trailers must not have framing, routing, authentication or content fields (RFC 9110 6.5.1), nor fields that
 * identify the client: a receiver that merges trailers into the head would confuse them with the proxy's fields.
 */
static bool may_trail(struct str name)
{
    static const struct str forbidden[] = {
        {"Authorization", 13},
        {"Cache-Control", 13},
        {"Connection", 10},
        {"Content-Encoding", 16},
        {"Content-Length", 14},
        {"Content-Range", 13},
        {"Content-Type", 12},
        {"Cookie", 6},
        {"Expect", 6},
        {"Forwarded", 9},
        {"Host", 4},
        {"If-Match", 8},
        {"If-Modified-Since", 17},
        {"If-None-Match", 13},
        {"If-Range", 8},
        {"If-Unmodified-Since", 19},
        {"Keep-Alive", 10},
        {"Max-Forwards", 12},
        {"Pragma", 6},
        {"Proxy-Authorization", 19},
        {"Proxy-Connection", 16},
        {"Range", 5},
        {"Set-Cookie", 10},
        {"TE", 2},
        {"Trailer", 7},
        {"Transfer-Encoding", 17},
        {"Upgrade", 7},
        {"X-Forwarded-For", 15},
        {"X-Forwarded-Host", 16},
        {"X-Forwarded-Port", 16},
        {"X-Forwarded-Proto", 17},
        {"X-Forwarded-Server", 18},
        {"X-Real-IP", 9},
    };

    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (str_equal_nocase(name, forbidden[i]))
            return false;
    }
    return true;
}

void h1_remove_forbidden_trailers(struct headers *trailers)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < trailers->count; i++) {
        if (may_trail(trailers->items[i].name))
            trailers->items[kept++] = trailers->items[i];
    }
    trailers->count = kept;
}

/* The trailer section is complete: copies it to the arena and drops fields that are not allowed there. */
static int trailers_complete(struct h1_chunked *chunked, size_t length)
{
    struct str lines = h1_copy_lines(chunked->arena, str_of(chunked->pending.data, length));
    int error;

    if (!lines.data)
        return -ENOMEM;
    buffer_finish(&chunked->pending);
    error = h1_parse_fields(lines, chunked->underscores, chunked->arena, chunked->trailers);
    if (error)
        return error;
    h1_remove_forbidden_trailers(chunked->trailers);
    chunked->state = CHUNKED_WHOLE;
    return 0;
}

static int next_trailers(struct h1_chunked *chunked, struct str *in)
{
    for (;;) {
        struct str line;
        size_t from = (size_t)chunked->left; /* start of the incomplete line */
        int result = next_line(chunked, in, from, LIMIT_TRAILER_BYTES, &line);

        if (result <= 0)
            return result ? result : -EAGAIN;
        if (line.length == 0)
            return trailers_complete(chunked, from);
        if (++chunked->trailer_lines > chunked->max_trailers)
            return -EBADMSG;
        chunked->left = chunked->pending.length;
    }
}

int h1_chunked_next(struct h1_chunked *chunked, struct str *in, struct str *out_part)
{
    int result = 0;

    while (result == 0) {
        switch (chunked->state) {
        case CHUNKED_SIZE:
            result = next_size(chunked, in);
            break;
        case CHUNKED_CONTENT:
            if (in->length == 0)
                return -EAGAIN;
            *out_part = str_slice(*in, 0, chunked->left < in->length ? (size_t)chunked->left : in->length);
            *in = str_skip(*in, out_part->length);
            chunked->left -= out_part->length;
            if (chunked->left == 0)
                chunked->state = CHUNKED_CRLF;
            return 1;
        case CHUNKED_CRLF:
            result = next_content_end(chunked, in);
            if (result == 0)
                chunked->left = 0;
            break;
        case CHUNKED_TRAILERS:
            result = next_trailers(chunked, in);
            break;
        case CHUNKED_WHOLE:
            return 0;
        }
    }
    return result;
}
