/*
 * Operations on string views. They do not allocate and do not read past `length`. An empty str may have a NULL
 * pointer, which must not be passed to memcmp, memchr and similar functions.
 */
#include "base/str.h"

#include <errno.h>
#include <limits.h>

#define DISTANCE_MAX 64

static uint64_t load_word(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

/* Lowers the ASCII letters among eight bytes. */
static uint64_t lower_word(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t low_bits = word & ones * 0x7f;
    uint64_t from_a = low_bits + ones * (0x80 - 'A');
    uint64_t after_z = low_bits + ones * (0x7f - 'Z');

    return word | ((from_a ^ after_z) & ~word & ones * 0x80) >> 2;
}

static bool same_word(const char *a, const char *b)
{
    return lower_word(load_word(a)) == lower_word(load_word(b));
}

bool str_same_letters(const char *a, const char *b, size_t length)
{
    size_t at = 0;

    if (length < 8) {
        while (at < length && str_lower(a[at]) == str_lower(b[at]))
            at++;
        return at == length;
    }
    for (; at + 8 < length; at += 8) {
        if (!same_word(a + at, b + at))
            return false;
    }
    return same_word(a + length - 8, b + length - 8); /* may overlap the last word */
}

bool str_ends(struct str s, struct str suffix)
{
    return s.length >= suffix.length && str_equal(str_skip(s, s.length - suffix.length), suffix);
}

int str_compare(struct str a, struct str b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common ? memcmp(a.data, b.data, common) : 0;

    if (order != 0)
        return order;
    return (a.length > b.length) - (a.length < b.length);
}

ssize_t str_find(struct str s, char byte)
{
    const char *found = s.length ? memchr(s.data, byte, s.length) : NULL;

    return found ? found - s.data : -1;
}

ssize_t str_rfind(struct str s, char byte)
{
    const char *found = s.length ? memrchr(s.data, byte, s.length) : NULL;

    return found ? found - s.data : -1;
}

ssize_t str_search(struct str s, struct str needle)
{
    const char *found;

    if (needle.length == 0)
        return 0;
    if (s.length < needle.length)
        return -1;
    found = memmem(s.data, s.length, needle.data, needle.length);
    return found ? found - s.data : -1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct str str_trim(struct str s)
{
    size_t from = 0;
    size_t to = s.length;

    while (from < to && is_blank(s.data[from]))
        from++;
    while (to > from && is_blank(s.data[to - 1]))
        to--;
    return str_slice(s, from, to);
}

struct str str_cut(struct str *rest, char separator)
{
    struct str whole = *rest;
    ssize_t at = str_find(whole, separator);

    if (at < 0) {
        *rest = (struct str){NULL, 0};
        return whole;
    }
    *rest = str_skip(whole, (size_t)at + 1);
    return str_slice(whole, 0, (size_t)at);
}

char *str_write_u64(char *at, uint64_t number)
{
    char digits[STR_U64_DIGITS];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count)
        *at++ = digits[--count];
    return at;
}

int str_to_u64(struct str s, uint64_t *out_value)
{
    uint64_t value = 0;
    bool overflow = false;

    if (s.length == 0)
        return -EINVAL;
    for (size_t i = 0; i < s.length; i++) {
        unsigned digit = (unsigned char)s.data[i] - (unsigned)'0';

        if (digit > 9)
            return -EINVAL;
        overflow = overflow || __builtin_mul_overflow(value, 10u, &value) ||
                   __builtin_add_overflow(value, digit, &value);
    }
    if (overflow)
        return -ERANGE;
    *out_value = value;
    return 0;
}

static size_t min_of_three(size_t a, size_t b, size_t c)
{
    size_t min = a < b ? a : b;

    return min < c ? min : c;
}

/* A swap of two neighbouring characters counts as one edit. */
size_t str_distance(struct str a, struct str b)
{
    size_t rows[3][DISTANCE_MAX + 1];
    size_t *before = rows[0];
    size_t *last = rows[1];
    size_t *now = rows[2];

    if (a.length > DISTANCE_MAX || b.length > DISTANCE_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.length; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.length; i++) {
        size_t *spare = before;

        now[0] = i;
        for (size_t j = 1; j <= b.length; j++) {
            size_t cost = a.data[i - 1] != b.data[j - 1];

            now[j] = min_of_three(last[j] + 1, now[j - 1] + 1, last[j - 1] + cost);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                now[j] = min_of_three(now[j], before[j - 2] + 1, SIZE_MAX);
        }
        before = last;
        last = now;
        now = spare;
    }
    return last[b.length];
}
