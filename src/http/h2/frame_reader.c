/*
 * Assembles frames: the head first, because it has the length.
 */
#include "http/h2/frame_reader.h"

#include "base/saturate.h"

#include <errno.h>

/* Moves bytes to the incomplete frame until it has `want` bytes. 0 or -ENOMEM. */
static int gather_bytes(struct h2_frame_reader *reader, struct str *in, size_t want)
{
    struct str part = str_slice(*in, 0, size_sub_sat(want, reader->input.length));

    *in = str_skip(*in, part.length);
    return buffer_append(&reader->input, part);
}

static void discard_returned(struct h2_frame_reader *reader)
{
    if (reader->returned)
        buffer_finish(&reader->input);
    reader->returned = false;
}

static int check_head(const char *head, struct h2_frame *out_frame, enum h2_error *out_error)
{
    *out_frame = h2_frame_parse_head(head);
    *out_error = h2_frame_check(out_frame);
    return *out_error ? -EPROTO : 0;
}

static int read_gathered(struct h2_frame_reader *reader, struct str *in, struct h2_frame *out_frame,
                         enum h2_error *out_error)
{
    int error = gather_bytes(reader, in, H2_FRAME_HEAD);

    if (error < 0 || reader->input.length < H2_FRAME_HEAD)
        return error;
    error = check_head(reader->input.data, out_frame, out_error);
    if (error == 0)
        error = gather_bytes(reader, in, H2_FRAME_HEAD + out_frame->length);
    if (error < 0 || reader->input.length < H2_FRAME_HEAD + out_frame->length)
        return error;
    out_frame->payload = str_skip(buffer_str(&reader->input), H2_FRAME_HEAD);
    reader->returned = true;
    return 1;
}

int h2_frame_read(struct h2_frame_reader *reader, struct str *in, struct h2_frame *out_frame, enum h2_error *out_error)
{
    int error;

    discard_returned(reader);
    if (str_empty(*in))
        return 0;
    if (reader->input.length > 0 || in->length < H2_FRAME_HEAD)
        return read_gathered(reader, in, out_frame, out_error);
    error = check_head(in->data, out_frame, out_error);
    if (error < 0)
        return error;
    if (in->length < H2_FRAME_HEAD + out_frame->length)
        return read_gathered(reader, in, out_frame, out_error);
    out_frame->payload = str_of(in->data + H2_FRAME_HEAD, out_frame->length);
    *in = str_skip(*in, H2_FRAME_HEAD + out_frame->length);
    return 1;
}

void h2_frame_reader_finish(struct h2_frame_reader *reader)
{
    buffer_finish(&reader->input);
    reader->returned = false;
}
