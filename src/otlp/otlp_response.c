/*
 * Parses status line, Retry-After, Content-Length, and the partial success in the body.
 */
#include "otlp/otlp_response.h"

#include "base/limits.h"

#include <errno.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

bool otlp_status_is_retryable(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static bool read_varint(struct str *rest, uint64_t *out)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && !str_empty(*rest); shift += 7) {
        unsigned char c = (unsigned char)rest->data[0];

        *rest = str_skip(*rest, 1);
        value |= (uint64_t)(c & 127) << shift;
        if (c < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* Reads one field. *out_bytes: a submessage or text; *out_number: a varint. False: the message is malformed. */
static bool read_field(struct str *rest, uint64_t *out_field, struct str *out_bytes, uint64_t *out_number)
{
    uint64_t key, length = 0;
    bool valid = read_varint(rest, &key);

    *out_bytes = STR("");
    *out_number = 0;
    if (!valid)
        return false;
    *out_field = key >> 3;
    if ((key & 7) == WIRE_VARINT)
        return read_varint(rest, out_number);
    if ((key & 7) == WIRE_BYTES)
        valid = read_varint(rest, &length);
    else if ((key & 7) == WIRE_FIXED64 || (key & 7) == WIRE_FIXED32)
        length = (key & 7) == WIRE_FIXED64 ? 8 : 4;
    else
        valid = false;
    if (!valid || length > rest->length)
        return false;
    *out_bytes = str_slice(*rest, 0, (size_t)length);
    *rest = str_skip(*rest, (size_t)length);
    return true;
}

/* ExportTraceServiceResponse.partial_success (1), ExportTracePartialSuccess.rejected_spans (1). */
uint64_t otlp_response_rejected(struct str body)
{
    struct str partial = STR(""), bytes;
    uint64_t field, number, rejected = 0;

    while (!str_empty(body)) {
        if (!read_field(&body, &field, &bytes, &number))
            return 0;
        if (field == 1)
            partial = bytes;
    }
    while (!str_empty(partial)) {
        if (!read_field(&partial, &field, &bytes, &number))
            return 0;
        if (field == 1)
            rejected = number;
    }
    return rejected <= INT64_MAX ? rejected : 0;
}

/* "HTTP/1.1 200 OK" */
static int parse_status(struct str line)
{
    uint64_t status;

    if (!str_starts(line, STR("HTTP/1.")) || line.length < 12 || line.data[8] != ' ' ||
        (line.length > 12 && line.data[12] != ' ') || str_to_u64(str_slice(line, 9, 12), &status) < 0 ||
        status < 100 || status > 599)
        return -EBADMSG;
    return (int)status;
}

static void parse_field(struct str line, struct otlp_response *response, uint64_t *length, bool *chunked)
{
    struct str value = line;
    struct str name = str_cut(&value, ':');
    uint64_t number;

    value = str_trim(str_or_empty(value));
    if (str_equal_nocase(name, STR("Transfer-Encoding")))
        *chunked = true;
    if (str_to_u64(value, &number) < 0)
        return;
    if (str_equal_nocase(name, STR("Content-Length")))
        *length = number;
    if (str_equal_nocase(name, STR("Retry-After")) && number > LIMIT_OTLP_RETRY_AFTER_MS / 1000)
        response->retry_after_ms = LIMIT_OTLP_RETRY_AFTER_MS;
    else if (str_equal_nocase(name, STR("Retry-After")))
        response->retry_after_ms = number * 1000;
}

/* Parses a complete head and its body. Only of a 200 is the body needed. */
static int parse_message(struct str head, struct str body, bool ended, struct otlp_response *response)
{
    uint64_t length = UINT64_MAX;
    bool chunked = false;

    while (head.data) {
        struct str line = str_cut(&head, '\n');

        if (str_ends(line, STR("\r")))
            line.length--;
        parse_field(line, response, &length, &chunked);
    }
    if (response->status != 200 || chunked)
        return 1;
    if (body.length < length && !ended)
        return 0;
    response->rejected = otlp_response_rejected(length < body.length ? str_slice(body, 0, (size_t)length) : body);
    return 1;
}

int otlp_response_parse(struct str bytes, bool ended, struct otlp_response *out_response)
{
    struct otlp_response response = {0};
    ssize_t end;

    ended |= bytes.length >= LIMIT_OTLP_RESPONSE;
    do {
        end = str_search(bytes, STR("\r\n\r\n"));
        if (end < 0)
            return ended ? -EBADMSG : 0;
        response.status = parse_status(str_slice(bytes, 0, (size_t)str_find(bytes, '\r')));
        if (response.status < 0)
            return response.status;
        if (response.status >= 200)
            break;
        bytes = str_skip(bytes, (size_t)end + 4);
    } while (true);
    if (parse_message(str_slice(bytes, 0, (size_t)end), str_skip(bytes, (size_t)end + 4), ended, &response) == 0)
        return 0;
    *out_response = response;
    return 1;
}
