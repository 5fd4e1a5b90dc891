/*
 * HTTP/1 responses: the result does not depend on how the bytes are divided, all slices lie inside the input, fields
 * are well-formed, and the body has its Content-Length. The first byte of the input selects the properties of the
 * request and of the end of the connection, the second one the size of the pieces.
 */
#include "fuzz.h"

#include "http/h1_reply.h"

enum { TO_HEAD = 1, TO_UPGRADE = 2, CUT = 4 };

struct outcome {
    enum h1_reply_step last;
    const char *fault;
    int status, interims;
    unsigned fields, trailers;
    uint64_t body, sum;             /* bytes of the body; their sum, dependent on their order */
    size_t left;                    /* unread bytes of the input */
    bool keepalive;
};

static void check_fields(const struct headers *headers)
{
    for (unsigned i = 0; i < headers->count; i++)
        HOLDS(h1_is_token(headers->items[i].name) && h1_is_value(headers->items[i].value));
}

static void add_head(struct outcome *outcome, const struct h1_reply *reply)
{
    check_fields(&reply->headers);
    HOLDS(h1_is_value(reply->reason));
    if (outcome->last == REPLY_INTERIM) {
        HOLDS(reply->status >= 100 && reply->status <= 199 && reply->status != 101);
        outcome->interims++;
        return;
    }
    HOLDS(reply->status == 101 ? reply->settings.upgrade : reply->status >= 200 && reply->status <= 999);
    outcome->status = reply->status;
    outcome->fields = reply->headers.count;
}

static void add_part(struct outcome *outcome, struct str part)
{
    HOLDS(part.length > 0);
    outcome->body += part.length;
    for (size_t i = 0; i < part.length; i++)
        outcome->sum = outcome->sum * 31 + (unsigned char)part.data[i];
}

static bool is_last(enum h1_reply_step step)
{
    return step == REPLY_WHOLE || step == REPLY_BAD || step == REPLY_NO_MEMORY;
}

/* Reads all items of one piece. Returns the unread bytes. */
static size_t read_piece(struct h1_reply *reply, struct outcome *outcome, struct str piece)
{
    struct str in = piece;
    struct str part;

    do {
        outcome->last = h1_reply_read(reply, &in, &part);
        HOLDS(in.length <= piece.length && in.data + in.length == piece.data + piece.length);
        if (outcome->last == REPLY_INTERIM || outcome->last == REPLY_HEAD)
            add_head(outcome, reply);
        if (outcome->last == REPLY_PART) {
            HOLDS(part.data >= piece.data && part.data + part.length <= in.data);
            add_part(outcome, part);
        }
    } while (!is_last(outcome->last) && outcome->last != REPLY_MORE);
    HOLDS(outcome->last != REPLY_MORE || in.length == 0);
    return in.length;
}

static void check_end(const struct h1_reply *reply, const struct outcome *outcome)
{
    HOLDS(is_last(outcome->last) && outcome->last != REPLY_NO_MEMORY);
    HOLDS((outcome->last == REPLY_BAD) == (reply->fault != NULL));
    if (outcome->last == REPLY_WHOLE)
        HOLDS(reply->bodiless ? outcome->body == 0
                              : reply->content_length == BODY_LENGTH_UNKNOWN || reply->content_length == outcome->body);
}

static struct outcome read_all(unsigned flags, struct str whole, size_t piece)
{
    const struct h1_reply_settings settings = {.head = flags & TO_HEAD, .upgrade = flags & TO_UPGRADE, .head_max = 512};
    struct outcome outcome = {.last = REPLY_MORE};
    struct headers trailers = {0};
    struct h1_reply reply;
    struct arena arena;

    arena_init(&arena, NULL, 0);
    h1_reply_init(&reply, &settings, &arena, &trailers);
    while (whole.length > 0 && !is_last(outcome.last)) {
        struct str in = str_slice(whole, 0, piece);

        whole = str_skip(whole, in.length);
        outcome.left = whole.length + read_piece(&reply, &outcome, in);
    }
    if (!is_last(outcome.last))
        outcome.last = h1_reply_ended(&reply, flags & CUT);
    check_end(&reply, &outcome);
    check_fields(&trailers);
    outcome.fault = reply.fault;
    outcome.trailers = trailers.count;
    outcome.keepalive = outcome.last == REPLY_WHOLE && reply.keepalive;
    h1_reply_finish(&reply);
    arena_reset(&arena);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct outcome whole, split;
    struct str sent;

    if (size < 2 || size > 4096)
        return 0;
    sent = str_of((const char *)bytes + 2, size - 2);
    whole = read_all(bytes[0], sent, size);
    split = read_all(bytes[0], sent, 1u + bytes[1] % 64);
    HOLDS(whole.last == split.last && whole.fault == split.fault);
    HOLDS(whole.status == split.status && whole.interims == split.interims && whole.fields == split.fields);
    HOLDS(whole.last == REPLY_BAD || (whole.left == split.left && whole.trailers == split.trailers));
    HOLDS(whole.last == REPLY_BAD || (whole.body == split.body && whole.sum == split.sum));
    HOLDS(whole.keepalive == split.keepalive);
    return 0;
}
