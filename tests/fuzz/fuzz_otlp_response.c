/*
 * The response of a collector of spans. In pieces of one byte it has the same meaning as in one piece; only bytes after
 * its end, which exclude another request on the connection, are not seen then.
 */
#include "fuzz.h"

#include "base/limits.h"
#include "otlp/otlp_response.h"

#include <errno.h>

static int read_pieces(struct otlp_response_reader *reader, struct str rest, size_t piece)
{
    int result = 0;

    otlp_response_init(reader);
    while (result == 0 && rest.length > 0) {
        size_t part = rest.length < piece ? rest.length : piece;

        result = otlp_response_read(reader, str_slice(rest, 0, part));
        rest = str_skip(rest, part);
    }
    return result == 0 ? otlp_response_read(reader, STR("")) : result;
}

static void check_response(const struct otlp_response *response)
{
    HOLDS(response->status >= 200 && response->status <= 599);
    HOLDS(response->retry_after_ms <= LIMIT_OTLP_RETRY_AFTER_MS);
    HOLDS(response->rejected <= INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct otlp_response_reader whole, pieces;
    struct str text = str_of((const char *)bytes, size);
    int result;

    (void)otlp_response_rejected(text);
    if (size >= LIMIT_OTLP_RESPONSE)
        return 0;
    result = read_pieces(&whole, text, size);
    HOLDS(result == 1 || result == -EBADMSG);
    HOLDS(read_pieces(&pieces, text, 1) == result);
    if (result == 1) {
        check_response(&whole.response);
        HOLDS(pieces.response.status == whole.response.status);
        HOLDS(pieces.response.retry_after_ms == whole.response.retry_after_ms);
        HOLDS(pieces.response.rejected == whole.response.rejected);
        HOLDS(pieces.response.keepalive || !whole.response.keepalive);
    }
    otlp_response_finish(&whole);
    otlp_response_finish(&pieces);
    return 0;
}
