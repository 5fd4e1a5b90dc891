/*
 * HTTP/2: sluice and libnghttp2 accept or refuse the same frames, and receive the same requests. The first byte of the
 * input is the size of the pieces, the second one selects whether SETTINGS are exchanged before. The rest is sent after
 * the preface. The results are compared after each frame, or header block; an incomplete one at the end is dropped.
 */
#include "fuzz.h"

#include "h2_differences.h"

static void side_open(struct h2_side *side, const struct h2_side_ops *ops, size_t piece)
{
    *side = (struct h2_side){.ops = ops, .piece = piece ? piece : SIZE_MAX};
    side->server = ops->open(side);
}

static void side_close(struct h2_side *side)
{
    side->ops->close(side->server);
    buffer_finish(&side->sent);
    buffer_finish(&side->requests);
    buffer_finish(&side->notes);
}

static void side_feed(struct h2_side *side, struct str bytes)
{
    while (bytes.length) {
        struct str part = str_slice(bytes, 0, side->piece);

        side->ops->feed(side->server, part);
        bytes = str_skip(bytes, part.length);
    }
}

static void feed(struct peers *peers, struct str bytes)
{
    side_feed(&peers->sluice, bytes);
    side_feed(&peers->nghttp2, bytes);
}

/* Reads the frames that the side has sent. */
static struct outcome side_outcome(struct h2_side *side)
{
    struct outcome outcome = {.verdict = side->rejected ? REJECTED : ACCEPTED, .code = (uint32_t)side->rejected};
    struct str sent = buffer_str(&side->sent);

    while (sent.length) {
        struct h2_frame frame = h2_frame_parse_head(sent.data);
        const char *payload = sent.data + H2_FRAME_HEAD;

        if (frame.type == H2_GOAWAY && h2_read_u32(payload + 4))
            outcome = (struct outcome){ENDED, h2_read_u32(payload + 4), 0};
        else if (frame.type == H2_RST_STREAM && outcome.verdict != ENDED)
            outcome = (struct outcome){RESET, h2_read_u32(payload), frame.stream};
        sent = str_skip(sent, H2_FRAME_HEAD + frame.length);
    }
    side->sent.length = 0;
    side->rejected = 0;
    return outcome;
}

static void reset_stream(struct peers *peers, uint32_t stream)
{
    char reset[H2_NUMBER_FRAME];

    h2_frame_write_number(reset, H2_RST_STREAM, stream, H2_CANCEL);
    feed(peers, str_of(reset, sizeof(reset)));
    side_outcome(&peers->sluice);
    side_outcome(&peers->nghttp2);
}

static void print_side(const char *name, const struct h2_side *side, struct outcome outcome)
{
    static const char *const verdicts[] = {"accepted", "rejected", "reset", "ended"};

    fprintf(stderr, "%s: %s %u\n" STR_FMT STR_FMT "\n", name, verdicts[outcome.verdict], outcome.code,
            STR_ARG(buffer_str(&side->requests)), STR_ARG(buffer_str(&side->notes)));
}

/* Sluice may answer a request that libnghttp2 accepts by an error of its own. */
static bool is_alike(const struct peers *peers, struct outcome sluice, struct outcome nghttp2)
{
    if (nghttp2.verdict == ACCEPTED && sluice.verdict == REJECTED)
        return true;
    if (sluice.verdict != nghttp2.verdict || sluice.stream != nghttp2.stream)
        return false;
    return sluice.verdict != ACCEPTED ||
           str_equal(buffer_str(&peers->sluice.requests), buffer_str(&peers->nghttp2.requests));
}

/* True if the connection continues; the client resets a stream whose states differ from then on. */
static bool compare(struct peers *peers, const struct h2_frame *frame)
{
    struct outcome sluice = side_outcome(&peers->sluice);
    struct outcome nghttp2 = side_outcome(&peers->nghttp2);
    uint32_t stream = sluice.stream ? sluice.stream : nghttp2.stream ? nghttp2.stream : frame->stream;

    if (!is_alike(peers, sluice, nghttp2) && !is_permitted(peers, frame, sluice, nghttp2)) {
        fprintf(stderr, "frame of type %u\n", frame->type);
        print_side("sluice", &peers->sluice, sluice);
        print_side("libnghttp2", &peers->nghttp2, nghttp2);
        abort();
    }
    peers->sluice.requests.length = peers->nghttp2.requests.length = peers->nghttp2.notes.length = 0;
    if (sluice.verdict == ENDED || nghttp2.verdict == ENDED)
        return false;
    if (sluice.verdict != nghttp2.verdict)
        reset_stream(peers, stream);
    return true;
}

/*
 * Cuts off the next frame; also only its head, if its length is not permitted (RFC 9113 4.2; libnghttp2 does not check
 * CONTINUATION).
 */
static bool next_frame(struct str *input, struct h2_frame *out_frame, struct str *out_bytes)
{
    if (input->length < H2_FRAME_HEAD)
        return false;
    *out_frame = h2_frame_parse_head(input->data);
    if (out_frame->length > input->length - H2_FRAME_HEAD &&
        (out_frame->length <= H2_FRAME_SIZE || out_frame->type == H2_CONTINUATION))
        return false;
    *out_bytes = str_slice(*input, 0, H2_FRAME_HEAD + out_frame->length);
    out_frame->payload = str_skip(*out_bytes, H2_FRAME_HEAD);
    *input = str_skip(*input, out_bytes->length);
    return true;
}

static void end_stream(struct peers *peers, const struct h2_frame *frame)
{
    if ((frame->type != H2_HEADERS && frame->type != H2_DATA) || !(frame->flags & H2_FLAG_END_STREAM))
        return;
    peers->sluice.ops->end(peers->sluice.server, frame->stream);
    peers->nghttp2.ops->end(peers->nghttp2.server, frame->stream);
}

static void feed_frames(struct peers *peers, struct str input)
{
    struct h2_frame frame;
    struct h2_frame first = {0}; /* of a header block; otherwise the same frame */
    bool open = false;           /* a header block is incomplete */
    struct str bytes;

    while (next_frame(&input, &frame, &bytes)) {
        bool part = frame.type == H2_CONTINUATION && open;

        if (!part)
            first = frame;
        feed(peers, bytes);
        open = (part || frame.type == H2_HEADERS) && !(frame.flags & H2_FLAG_END_HEADERS);
        if (open)
            continue;
        end_stream(peers, &first);
        peers->acknowledged |= frame.type == H2_SETTINGS && (frame.flags & H2_FLAG_ACK);
        /* libnghttp2 ends a connection without streams after GOAWAY. */
        if (!compare(peers, &first) || frame.type == H2_GOAWAY)
            return;
    }
}

/* The preface, with SETTINGS and the acknowledgement of the server's SETTINGS. */
static void exchange_settings(struct peers *peers)
{
    char settings[2 * H2_FRAME_HEAD];

    h2_frame_write_head(h2_frame_write_head(settings, 0, H2_SETTINGS, 0, 0), 0, H2_SETTINGS, H2_FLAG_ACK, 0);
    feed(peers, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    if (peers->acknowledged)
        feed(peers, str_of(settings, sizeof(settings)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct peers peers = {.acknowledged = size >= 2 && bytes[1] % 2 == 0};

    if (size < 2 || size > 4096)
        return 0;
    side_open(&peers.sluice, &h2_side_sluice, bytes[0]);
    side_open(&peers.nghttp2, &h2_side_nghttp2, bytes[0]);
    exchange_settings(&peers);
    feed_frames(&peers, str_of((const char *)bytes + 2, size - 2));
    side_close(&peers.nghttp2);
    side_close(&peers.sluice);
    return 0;
}
