/*
 * FastCGI responses: the result does not depend on how the bytes are divided, all slices lie inside the input, and the
 * body has its Content-Length.
 */
#include "fuzz.h"

#include "modules/fastcgi/fastcgi_reply.h"

#include <string.h>

struct outcome {
    enum h1_reply_step last;
    int status;
    uint64_t body;                  /* in bytes */
    uint64_t sum;                   /* of the body's bytes, dependent on their order */
    const char *fault;
    size_t left;                    /* unread bytes of the input */
};

static struct outcome read_all(struct str whole, size_t piece)
{
    struct arena arena;
    struct h1_reply reply;
    struct fastcgi_reply reader;
    struct outcome outcome = {.last = REPLY_MORE};

    arena_init(&arena, NULL, 0);
    fastcgi_reply_init(&reader, &reply, &arena, 1024, false);
    while (whole.length > 0 && outcome.last != REPLY_BAD && outcome.last != REPLY_WHOLE) {
        struct str in = str_slice(whole, 0, piece);
        struct str part;

        whole = str_skip(whole, in.length);
        do {
            outcome.last = fastcgi_reply_read(&reader, &in, &part);
            HOLDS(outcome.last != REPLY_INTERIM && outcome.last != REPLY_NO_MEMORY);
            HOLDS(outcome.last != REPLY_MORE || in.length == 0);
            for (size_t i = 0; outcome.last == REPLY_PART && i < part.length; i++)
                outcome.sum = outcome.sum * 31 + (unsigned char)part.data[i];
            if (outcome.last == REPLY_PART) {
                HOLDS(part.length > 0);
                outcome.body += part.length;
            }
        } while (outcome.last == REPLY_HEAD || outcome.last == REPLY_PART);
        outcome.left = whole.length + in.length;
    }
    if (outcome.last == REPLY_WHOLE) {
        HOLDS(reply.status >= 200 && reply.status <= 599);
        HOLDS(reply.bodiless || reply.content_length == BODY_LENGTH_UNKNOWN || reply.content_length == outcome.body);
    }
    outcome.status = reply.status;
    outcome.fault = reply.fault;
    HOLDS((outcome.last == REPLY_BAD) == (reply.fault != NULL));
    fastcgi_reply_finish(&reader);
    arena_reset(&arena);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str whole = str_of((const char *)bytes, size);
    struct outcome once = read_all(whole, size ? size : 1);

    for (size_t piece = 1; piece <= 7; piece += 3) {
        struct outcome pieces = read_all(whole, piece);

        HOLDS(once.last == pieces.last && once.fault == pieces.fault);
        HOLDS(once.last == REPLY_BAD || (once.status == pieces.status && once.body == pieces.body));
        HOLDS(once.last == REPLY_BAD || (once.sum == pieces.sum && once.left == pieces.left));
    }
    return 0;
}
