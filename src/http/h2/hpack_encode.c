/*
 * Encodes fields as indexed names of the static table with literal values, or as literals.
 */
#include "http/h2/hpack_encode.h"

struct static_name {
    struct str name;
    uint8_t index;
};

/* Names of responses in the static table (RFC 7541 appendix A), by length. */
static const struct static_name static_names[] = {
    /* clang-format off */
    {{"age", 3}, 21}, {{"via", 3}, 60},
    {{"date", 4}, 33}, {{"etag", 4}, 34}, {{"link", 4}, 45}, {{"vary", 4}, 59},
    {{"allow", 5}, 22},
    {{"server", 6}, 54},
    {{"expires", 7}, 36}, {{"refresh", 7}, 52},
    {{"location", 8}, 46},
    {{"set-cookie", 10}, 55},
    {{"retry-after", 11}, 53},
    {{"content-type", 12}, 31},
    {{"accept-ranges", 13}, 18}, {{"cache-control", 13}, 24}, {{"content-range", 13}, 30}, {{"last-modified", 13}, 44},
    {{"content-length", 14}, 28},
    {{"content-encoding", 16}, 26}, {{"content-language", 16}, 27}, {{"content-location", 16}, 29},
    {{"www-authenticate", 16}, 61},
    {{"transfer-encoding", 17}, 57},
    {{"proxy-authenticate", 18}, 48},
    {{"content-disposition", 19}, 25},
    {{"strict-transport-security", 25}, 56},
    {{"access-control-allow-origin", 27}, 20},
    /* clang-format on */
};

/* The entries of static_names with names of a length: from `first` until `end`. */
static const struct {
    uint8_t first, end;
} names_of_length[] = {
    [3] = {0, 2},    [4] = {2, 6},    [5] = {6, 7},    [6] = {7, 8},    [7] = {8, 10},   [8] = {10, 11},
    [10] = {11, 12}, [11] = {12, 13}, [12] = {13, 14}, [13] = {14, 18}, [14] = {18, 19}, [16] = {19, 23},
    [17] = {23, 24}, [18] = {24, 25}, [19] = {25, 26}, [25] = {26, 27}, [27] = {27, 28},
};

/* Statuses that are whole entries of the static table. */
static const struct {
    uint16_t status;
    uint8_t index;
} static_statuses[] = {{200, 8}, {204, 9}, {206, 10}, {304, 11}, {400, 12}, {404, 13}, {500, 14}};

/* An integer with a prefix of `bits` bits (RFC 7541 5.1); `pattern` has the bits above the prefix. */
static char *encode_integer(char *at, unsigned pattern, unsigned bits, size_t value)
{
    size_t prefix = (1u << bits) - 1;

    if (value < prefix) {
        *at++ = (char)(pattern | value);
        return at;
    }
    *at++ = (char)(pattern | prefix);
    for (value -= prefix; value >= 128; value >>= 7)
        *at++ = (char)(value | 128);
    *at++ = (char)value;
    return at;
}

static char *encode_value(char *at, struct str value)
{
    at = encode_integer(at, 0, 7, value.length);
    if (value.length)
        memcpy(at, value.data, value.length);
    return at + value.length;
}

static char *encode_name(char *at, struct str name)
{
    at = encode_integer(at, 0, 7, name.length);
    for (size_t i = 0; i < name.length; i++)
        *at++ = str_lower(name.data[i]);
    return at;
}

/* The index of a name in the static table, or 0. */
static unsigned static_index(struct str name)
{
    if (name.length >= sizeof names_of_length / sizeof names_of_length[0])
        return 0;
    for (size_t i = names_of_length[name.length].first; i < names_of_length[name.length].end; i++) {
        if (str_same_letters(static_names[i].name.data, name.data, name.length))
            return static_names[i].index;
    }
    return 0;
}

char *hpack_encode_status(char *at, int status)
{
    char digits[3] = {(char)('0' + status / 100 % 10), (char)('0' + status / 10 % 10), (char)('0' + status % 10)};

    for (size_t i = 0; i < sizeof static_statuses / sizeof static_statuses[0]; i++) {
        if (static_statuses[i].status == status)
            return encode_integer(at, 0x80, 7, static_statuses[i].index);
    }
    at = encode_integer(at, 0, 4, 8);
    return encode_value(at, str_of(digits, sizeof digits));
}

char *hpack_encode_field(char *at, struct str name, struct str value)
{
    unsigned index = static_index(name);

    at = encode_integer(at, 0, 4, index);
    if (index == 0)
        at = encode_name(at, name);
    return encode_value(at, value);
}
