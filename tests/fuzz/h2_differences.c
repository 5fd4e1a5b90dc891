/*
 * Where sluice and libnghttp2 may differ: each row has the section that permits both, or the rule that only sluice
 * checks.
 */
#include "h2_differences.h"

/* Conditions of differences: the frame, and both sides after it. */
static bool is_acknowledgement(const struct peers *peers, const struct h2_frame *frame)
{
    return frame->flags & H2_FLAG_ACK;
}

static bool is_unacknowledged(const struct peers *peers, const struct h2_frame *frame)
{
    return !peers->acknowledged;
}

/* libnghttp2 has ignored the frame. */
static bool is_ignored(const struct peers *peers, const struct h2_frame *frame)
{
    return peers->nghttp2.requests.length == 0 && peers->nghttp2.notes.length == 0;
}

static bool depends_on_itself(const struct peers *peers, const struct h2_frame *frame)
{
    struct h2_frame headers = *frame;
    uint32_t depends;

    return h2_frame_unpad(&headers, &depends) == H2_NO_ERROR && depends == frame->stream;
}

static bool is_overpadded(const struct peers *peers, const struct h2_frame *frame)
{
    struct str payload = frame->payload;

    return is_ignored(peers, frame) && (frame->flags & H2_FLAG_PADDED) &&
           (str_empty(payload) || (unsigned char)payload.data[0] >= payload.length);
}

static bool changes_priorities(const struct peers *peers, const struct h2_frame *frame)
{
    return str_search(frame->payload, str_of("\0\x09\0\0\0", 5)) >= 0;
}

static bool repeats_parameter(const struct peers *peers, const struct h2_frame *frame)
{
    for (struct str rest = frame->payload; rest.length; rest = str_skip(rest, H2_SETTING_SIZE)) {
        struct str next = str_skip(rest, H2_SETTING_SIZE);

        for (; next.length; next = str_skip(next, H2_SETTING_SIZE)) {
            if (memcmp(rest.data, next.data, 2) == 0)
                return true;
        }
    }
    return false;
}

/* Only for http and https, :path begins with "/". */
static bool has_other_path(const struct peers *peers, const struct h2_frame *frame)
{
    struct str target = buffer_str(&peers->nghttp2.requests);

    str_cut(&target, ' ');
    str_cut(&target, ' ');
    return !str_starts(target, STR("/"));
}

/* A frame of the connection about a stream of the client. */
static bool names_client_stream(const struct peers *peers, const struct h2_frame *frame)
{
    return frame->stream == 0 && (frame->payload.data[3] & 1);
}

static bool names_no_client_stream(const struct peers *peers, const struct h2_frame *frame)
{
    return !names_client_stream(peers, frame);
}

/* RFC 8441 4 permits extended CONNECT with Host instead of :authority. libnghttp2 has refused no field of it. */
static bool is_connect(const struct peers *peers, const struct h2_frame *frame)
{
    struct str accepted = buffer_str(&peers->sluice.requests);

    str_cut(&accepted, ' ');
    return str_starts(accepted, STR("CONNECT ")) && peers->nghttp2.notes.length == 0;
}

/* libnghttp2 evaluates Host and Content-Length of trailers, which sluice drops. */
static bool has_forbidden_trailer(const struct peers *peers, const struct h2_frame *frame)
{
    struct str accepted = buffer_str(&peers->sluice.requests);
    struct str notes = buffer_str(&peers->nghttp2.notes);

    str_cut(&accepted, ' ');
    return str_starts(accepted, STR("ends: ")) &&
           (str_search(notes, STR("name: [host]")) >= 0 || str_search(notes, STR("name: [content-length]")) >= 0);
}

/*
 * The permitted differences. Sections are those of RFC 9113, if not stated otherwise. By 5.4.1, any error of a stream
 * may end the connection.
 */
static const struct difference {
    enum h2_frame_type type; /* of the first frame of a header block */
    struct outcome sluice, nghttp2;
    bool (*applies)(const struct peers *peers, const struct h2_frame *frame); /* NULL: always */
    const char *reason;
} permitted[] = {
    {H2_HEADERS, {REJECTED}, {RESET, H2_PROTOCOL_ERROR}, NULL, "8.1.1: a malformed request may get a response"},
    {H2_HEADERS, {RESET, H2_REFUSED_STREAM}, {ENDED, H2_PROTOCOL_ERROR}, NULL, "5.1.2, 5.4.1"},
    {H2_HEADERS, {RESET, H2_PROTOCOL_ERROR}, {ENDED, H2_PROTOCOL_ERROR}, depends_on_itself, "RFC 7540 5.3.1, 5.4.1"},
    {H2_HEADERS, {RESET, H2_PROTOCOL_ERROR}, {ACCEPTED}, has_other_path, "8.3.1: sluice serves no such scheme"},
    {H2_HEADERS, {ACCEPTED}, {RESET, H2_PROTOCOL_ERROR}, is_connect, "RFC 8441 4: libnghttp2 requires :authority"},
    {H2_HEADERS, {ACCEPTED}, {RESET, H2_PROTOCOL_ERROR}, has_forbidden_trailer, "RFC 9110 6.5.1"},
    {H2_HEADERS, {ENDED, H2_STREAM_CLOSED}, {ACCEPTED}, is_ignored, "5.1: closed"},
    {H2_DATA, {RESET, H2_STREAM_CLOSED}, {ENDED, H2_STREAM_CLOSED}, NULL, "5.1, 5.4.1: half-closed"},
    {H2_DATA, {RESET, H2_STREAM_CLOSED}, {ACCEPTED}, is_ignored, "5.1: closed"},
    {H2_DATA, {ENDED, H2_PROTOCOL_ERROR}, {ACCEPTED}, is_overpadded, "6.1: of a closed stream"},
    {H2_DATA, {ENDED, H2_FRAME_SIZE_ERROR}, {ACCEPTED}, is_overpadded, "4.2: of a closed stream"},
    {H2_DATA, {RESET, H2_FLOW_CONTROL_ERROR}, {ACCEPTED}, is_unacknowledged, "6.9.3: before SETTINGS are known"},
    {H2_GOAWAY, {ACCEPTED}, {ENDED, H2_PROTOCOL_ERROR}, names_client_stream, "6.8, 5.4.1: not a stream of the server"},
    {H2_SETTINGS, {ACCEPTED}, {ENDED, H2_PROTOCOL_ERROR}, is_acknowledgement, "6.5.3, 5.4.1: of nothing"},
    {H2_SETTINGS, {ACCEPTED}, {ENDED, H2_PROTOCOL_ERROR}, changes_priorities, "RFC 9218 2.1: may be an error"},
    {H2_SETTINGS, {ENDED, H2_PROTOCOL_ERROR}, {ACCEPTED}, repeats_parameter, "6.5.3; libnghttp2 reads the last value"},
    {H2_SETTINGS, {ENDED, H2_FLOW_CONTROL_ERROR}, {ACCEPTED}, repeats_parameter, "6.5.3"},
    {H2_SETTINGS, {ENDED, H2_FLOW_CONTROL_ERROR}, {RESET, H2_FLOW_CONTROL_ERROR}, NULL, "6.9.2, only in sluice"},
    {H2_WINDOW_UPDATE, {RESET, H2_PROTOCOL_ERROR}, {ENDED, H2_PROTOCOL_ERROR}, NULL, "6.9, 5.4.1: no increment"},
    {H2_PRIORITY, {RESET, H2_PROTOCOL_ERROR}, {ACCEPTED}, NULL, "RFC 7540 5.3.1; libnghttp2 ignores PRIORITY"},
    {H2_PRIORITY, {ENDED, H2_PROTOCOL_ERROR}, {ACCEPTED}, NULL, "6.3, RFC 7540 5.3.1; as above"},
    {H2_PRIORITY_UPDATE, {ENDED, H2_PROTOCOL_ERROR}, {ACCEPTED}, names_no_client_stream, "RFC 9218 7.1"},
    {H2_PRIORITY_UPDATE, {ACCEPTED}, {ENDED, H2_PROTOCOL_ERROR}, names_client_stream,
     "RFC 9218 7.1: too many idle streams; sluice keeps nothing for these"},
};

static bool same_outcome(struct outcome a, struct outcome b)
{
    return a.verdict == b.verdict && (a.verdict == REJECTED || a.code == b.code);
}

bool is_permitted(const struct peers *peers, const struct h2_frame *frame, struct outcome sluice,
                  struct outcome nghttp2)
{
    for (size_t i = 0; i < sizeof(permitted) / sizeof(permitted[0]); i++) {
        const struct difference *row = &permitted[i];

        if (row->type == frame->type && same_outcome(row->sluice, sluice) && same_outcome(row->nghttp2, nghttp2) &&
            (!row->applies || row->applies(peers, frame)))
            return true;
    }
    return false;
}
