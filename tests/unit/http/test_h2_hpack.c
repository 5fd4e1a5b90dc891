/*
 * The encoder's output is decoded by libnghttp2, which also reports the fields that entered the dynamic table: none.
 */
#include "http/h2/field_write.h"
#include "http/h2/hpack_encode.h"
#include "suite.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>

static nghttp2_hd_inflater *inflater;
static char decoded[300000]; /* "name: value\n" for each field */
static size_t decoded_length;

static void setup(void)
{
    ck_assert_int_eq(nghttp2_hd_inflate_new(&inflater), 0);
}

static void add_decoded(const nghttp2_nv *field)
{
    int written = snprintf(decoded + decoded_length, sizeof(decoded) - decoded_length, "%.*s: %.*s\n",
                           (int)field->namelen, (char *)field->name, (int)field->valuelen,
                           (char *)field->value);

    decoded_length += (size_t)written;
    ck_assert_uint_lt(decoded_length, sizeof(decoded));
}

/* Decodes a whole block into `decoded`. */
static void decode(struct str block)
{
    int flags = 0;

    decoded_length = 0;
    decoded[0] = '\0';
    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv field;
        ssize_t taken = nghttp2_hd_inflate_hd2(inflater, &field, &flags, (const uint8_t *)block.data,
                                               block.length, 1);

        ck_assert_msg(taken >= 0, "%s", nghttp2_strerror((int)taken));
        block = str_skip(block, (size_t)taken);
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            add_decoded(&field);
    }
    nghttp2_hd_inflate_end_headers(inflater);
    ck_assert_uint_eq(nghttp2_hd_inflate_get_num_table_entries(inflater), 61);
}

START_TEST(every_status_is_encoded_within_its_bound)
{
    setup();
    for (int status = 100; status <= 999; status++) {
        char block[HPACK_STATUS_BOUND];
        char expected[20];
        char *end = hpack_encode_status(block, status);

        ck_assert_int_le(end - block, HPACK_STATUS_BOUND);
        decode(str_of(block, (size_t)(end - block)));
        snprintf(expected, sizeof(expected), ":status: %d\n", status);
        ck_assert_str_eq(decoded, expected);
    }
    nghttp2_hd_inflate_del(inflater);
}
END_TEST

static const struct {
    const char *name, *value, *decoded;
} fields[] = {
    {"Content-Type", "text/html", "content-type: text/html\n"},
    {"CONTENT-LENGTH", "5", "content-length: 5\n"},
    {"age", "", "age: \n"},
    {"Age", "1", "age: 1\n"},
    {"via", "a", "via: a\n"},
    {"Date", "x", "date: x\n"},
    {"ETag", "\"a\"", "etag: \"a\"\n"},
    {"Link", "</a>", "link: </a>\n"},
    {"Vary", "*", "vary: *\n"},
    {"Allow", "GET", "allow: GET\n"},
    {"Server", "s", "server: s\n"},
    {"Expires", "0", "expires: 0\n"},
    {"Refresh", "1", "refresh: 1\n"},
    {"Location", "/A", "location: /A\n"},
    {"Set-Cookie", "A=B", "set-cookie: A=B\n"},
    {"Retry-After", "1", "retry-after: 1\n"},
    {"Accept-Ranges", "bytes", "accept-ranges: bytes\n"},
    {"Cache-Control", "no-store", "cache-control: no-store\n"},
    {"Content-Range", "bytes */5", "content-range: bytes */5\n"},
    {"Last-Modified", "x", "last-modified: x\n"},
    {"Content-Encoding", "gzip", "content-encoding: gzip\n"},
    {"Content-Language", "de", "content-language: de\n"},
    {"Content-Location", "/x", "content-location: /x\n"},
    {"WWW-Authenticate", "Basic", "www-authenticate: Basic\n"},
    {"Transfer-Encoding", "x", "transfer-encoding: x\n"},
    {"Proxy-Authenticate", "x", "proxy-authenticate: x\n"},
    {"Content-Disposition", "inline", "content-disposition: inline\n"},
    {"Strict-Transport-Security", "max-age=1", "strict-transport-security: max-age=1\n"},
    {"Access-Control-Allow-Origin", "*", "access-control-allow-origin: *\n"},
    /* Names that are not in the static table. */
    {"X", "y", "x: y\n"},
    {"X-Mixed-CASE_1", "Mixed Value", "x-mixed-case_1: Mixed Value\n"},
    {"Content-Typf", "", "content-typf: \n"},
    {"X-A-Name-That-Is-Longer-Than-All-Of-The-Static-Table", "1",
     "x-a-name-that-is-longer-than-all-of-the-static-table: 1\n"},
    {"X-Bytes", "\x80\xff", "x-bytes: \x80\xff\n"},
};

/* True if the static table has an entry of this name, which is in lower case and ends with ':'. */
static bool is_in_static_table(const char *name)
{
    for (size_t i = 1; i <= 61; i++) {
        const nghttp2_nv *entry = nghttp2_hd_inflate_get_table_entry(inflater, i);

        if (strncmp(name, (const char *)entry->name, entry->namelen) == 0 && name[entry->namelen] == ':')
            return true;
    }
    return false;
}

START_TEST(fields_are_decoded)
{
    char block[200];
    char *end =
        hpack_encode_field(block, str_from(fields[_i].name), str_from(fields[_i].value));

    setup();
    ck_assert_uint_le((size_t)(end - block),
                      hpack_field_bound(str_from(fields[_i].name), str_from(fields[_i].value)));
    decode(str_of(block, (size_t)(end - block)));
    ck_assert_str_eq(decoded, fields[_i].decoded);
    ck_assert_int_eq(block[0] != 0, is_in_static_table(fields[_i].decoded)); /* 0: a literal name */
    nghttp2_hd_inflate_del(inflater);
}
END_TEST

/* Lengths at the edges of the integer representation. */
START_TEST(lengths_at_the_integer_limits_are_encoded)
{
    static const size_t lengths[] = {126, 127, 128, 254, 255, 256, 16510, 16511, 16512, 60000};
    static char value[60000];
    static char block[130000];

    setup();
    memset(value, 'v', sizeof(value));
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct str text = str_of(value, lengths[i]);
        struct str name = lengths[i] < 20000 ? text : STR("n");
        char *end = hpack_encode_field(block, name, text);

        ck_assert_uint_le((size_t)(end - block), hpack_field_bound(name, text));
        decode(str_of(block, (size_t)(end - block)));
        ck_assert_uint_eq(decoded_length, name.length + lengths[i] + 3);
        ck_assert_mem_eq(decoded, name.data, name.length);
        ck_assert_mem_eq(decoded + name.length + 2, value, lengths[i]);
    }
    nghttp2_hd_inflate_del(inflater);
}
END_TEST

/* Checks each frame's head and joins the payloads. Returns the number of frames. */
static unsigned join_frames(struct str frames, uint32_t max, uint8_t flags, struct str *out_block)
{
    static char block[100000];
    size_t length = 0;
    unsigned count = 0;

    for (; frames.length; count++) {
        struct h2_frame frame = h2_frame_parse_head(frames.data);
        bool last = frames.length == H2_FRAME_HEAD + frame.length;

        ck_assert_uint_ge(frames.length, H2_FRAME_HEAD + frame.length);
        ck_assert_uint_eq(frame.type, count ? H2_CONTINUATION : H2_HEADERS);
        ck_assert_uint_eq(frame.flags, (count ? 0 : flags) | (last ? H2_FLAG_END_HEADERS : 0));
        ck_assert_uint_eq(frame.stream, 77);
        ck_assert_uint_gt(frame.length, 0);
        ck_assert(last || frame.length == max);
        memcpy(block + length, frames.data + H2_FRAME_HEAD, frame.length);
        length += frame.length;
        frames = str_skip(frames, H2_FRAME_HEAD + frame.length);
    }
    *out_block = str_of(block, length);
    return count;
}

/* The same section in frames of each size: the fields are the same, and the bound holds. */
START_TEST(section_is_the_same_in_frames_of_any_size)
{
    static struct header items[] = {
        {{"X-First", 7}, {"1234567890", 10}}, {{"Connection", 10}, {"x", 1}},
        {{"Content-Length", 14}, {"9", 1}},   {{"Keep-Alive", 10}, {"x", 1}},
        {{"Upgrade", 7}, {"x", 1}},           {{"Transfer-Encoding", 17}, {"x", 1}},
        {{"Proxy-Connection", 16}, {"x", 1}}, {{"x-last", 6}, {"", 0}},
    };
    static const struct headers headers = {.items = items, .count = COUNT(items)};
    const struct h2_section section = {.status = 404, .headers = &headers, .date = STR("today"),
                                       .server = STR("sluice"), .content_length = UINT64_MAX - 1};
    size_t whole = 0;

    setup();
    for (uint32_t max = 200; max > 0; max--) {
        size_t bound = h2_section_bound(&section, max);
        char *frames = malloc(bound);
        char *end = h2_section_write(frames, &section, max, 77, true);
        struct str block;
        unsigned count;

        ck_assert_uint_le((size_t)(end - frames), bound);
        count = join_frames(str_of(frames, (size_t)(end - frames)), max, H2_FLAG_END_STREAM, &block);
        if (whole == 0)
            whole = block.length;
        ck_assert_uint_eq(block.length, whole);
        ck_assert_uint_eq(count, (whole + max - 1) / max);
        decode(block);
        ck_assert_str_eq(decoded, ":status: 404\nserver: sluice\ndate: today\nx-first: 1234567890\nx-last: \n"
                                  "content-length: 18446744073709551614\n");
        free(frames);
    }
    ck_assert_uint_lt(whole, 200);
    nghttp2_hd_inflate_del(inflater);
}
END_TEST

/*
 * Fields of the response replace those of the server; trailers have no status; a value neither begins nor ends with
 * whitespace (RFC 9113 8.2.1).
 */
START_TEST(fields_of_the_response_replace_those_of_the_server)
{
    static struct header items[] = {{{"DATE", 4}, {"d", 1}}, {{"Server", 6}, {"s", 1}}};
    static const struct headers own = {.items = items, .count = COUNT(items)};
    static struct header blanks[] = {{{"a", 1}, {" ", 1}}, {{"b", 1}, {" \tx y \t", 7}}, {{"c", 1}, {"", 0}}};
    static const struct headers padded = {.items = blanks, .count = COUNT(blanks)};
    static const struct headers none;
    const struct h2_section sections[] = {
        {.status = 200, .headers = &own, .date = STR("x"), .server = STR("x"), .content_length = 0},
        {.headers = &own, .content_length = BODY_LENGTH_UNKNOWN},
        {.status = 100, .headers = &none, .content_length = BODY_LENGTH_UNKNOWN},
        {.status = 200, .headers = &padded, .content_length = BODY_LENGTH_UNKNOWN},
    };
    static const char *const expected[] = {":status: 200\ndate: d\nserver: s\ncontent-length: 0\n",
                                           "date: d\nserver: s\n", ":status: 100\n",
                                           ":status: 200\na: \nb: x y\nc: \n"};

    setup();
    for (size_t i = 0; i < COUNT(sections); i++) {
        char frames[300];
        char *end = h2_section_write(frames, &sections[i], 16384, 77, false);
        struct str block;

        ck_assert_uint_le((size_t)(end - frames), h2_section_bound(&sections[i], 16384));
        ck_assert_uint_eq(join_frames(str_of(frames, (size_t)(end - frames)), 16384, 0, &block), 1);
        ck_assert_int_eq(block.data[0], HPACK_NO_TABLE);
        decode(block);
        ck_assert_str_eq(decoded, expected[i]);
    }
    nghttp2_hd_inflate_del(inflater);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {every_status_is_encoded_within_its_bound, lengths_at_the_integer_limits_are_encoded,
                                  section_is_the_same_in_frames_of_any_size,
                                  fields_of_the_response_replace_those_of_the_server};
    const struct suite_loop loops[] = {{fields_are_decoded, COUNT(fields)}};

    return suite_run_loops("h2_hpack", tests, COUNT(tests), loops, COUNT(loops));
}
