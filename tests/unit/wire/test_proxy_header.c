#include "wire/proxy_header.h"

#include "../runner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#define BYTES(literal)                                                                                       \
    {                                                                                                        \
        "" literal, sizeof(literal) - 1                                                                      \
    }
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define IP4       "\xc0\0\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb"
#define IP6                                                                                                  \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\xdc\x04\x01\xbb"

/* Prints "192.0.2.1 56324", or "-" for no address. */
static const char *shown(const union proxy_address *address, char *into)
{
    char text[INET6_ADDRSTRLEN];

    if (address->any.sa_family == AF_INET)
        sprintf(into, "%s %u", inet_ntop(AF_INET, &address->ip4.sin_addr, text, sizeof(text)),
                ntohs(address->ip4.sin_port));
    else if (address->any.sa_family == AF_INET6)
        sprintf(into, "%s %u", inet_ntop(AF_INET6, &address->ip6.sin6_addr, text, sizeof(text)),
                ntohs(address->ip6.sin6_port));
    else
        strcpy(into, "-");
    return into;
}

static const struct {
    struct str bytes;
    const char *source, *destination;
} good[] = {
    {BYTES("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"), "192.0.2.1 56324", "198.51.100.1 443"},
    {BYTES("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"), "255.255.255.255 65535",
     "255.255.255.255 65535"},
    {BYTES("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n"), "0.0.0.0 0", "0.0.0.0 0"},
    {BYTES("PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n"), "2001:db8::1 56324", "2001:db8::2 443"},
    {BYTES("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 "
           "65535\r\n"),
     "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535"},
    {BYTES("PROXY UNKNOWN\r\n"), "-", "-"},
    {BYTES("PROXY UNKNOWN whatever there is 1 2 3\r\n"), "-", "-"},
    {BYTES(SIGNATURE "\x21\x11\0\x0c" IP4), "192.0.2.1 56324", "198.51.100.1 443"},
    {BYTES(SIGNATURE "\x21\x21\0\x24" IP6), "2001:db8::1 56324", "2001:db8::2 443"},
    {BYTES(SIGNATURE "\x20\0\0\0"), "-", "-"},
    {BYTES(SIGNATURE "\x20\x11\0\x03"
                     "any"),
     "-", "-"},
    {BYTES(SIGNATURE "\x21\0\0\x02"
                     "??"),
     "-", "-"},
    {BYTES(SIGNATURE "\x21\x11\0\x13" IP4 "\x04\0\x01x\x05\0\0"), "192.0.2.1 56324", "198.51.100.1 443"},
};

static const struct {
    const char *why;
    struct str bytes;
} bad[] = {
    {"another protocol", BYTES("GET / HTTP/1.1\r\n")},
    {"TLS", BYTES("\x16\x03\x01\x02\0")},
    {"case", BYTES("Proxy TCP4 1.1.1.1 1.1.1.1 1 1\r\n")},
    {"no family", BYTES("PROXY \r\n")},
    {"unknown family", BYTES("PROXY TCP5 1.1.1.1 1.1.1.1 1 1\r\n")},
    {"two spaces", BYTES("PROXY  TCP4 1.1.1.1 1.1.1.1 1 1\r\n")},
    {"two spaces inside", BYTES("PROXY TCP4 1.1.1.1  1.1.1.1 1 1\r\n")},
    {"a word too few", BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1\r\n")},
    {"a word too many", BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1 1 1\r\n")},
    {"a space behind", BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1 1 \r\n")},
    {"the other family", BYTES("PROXY TCP4 ::1 ::1 1 1\r\n")},
    {"the other family", BYTES("PROXY TCP6 1.1.1.1 1.1.1.1 1 1\r\n")},
    {"no address", BYTES("PROXY TCP4 1.1.1 1.1.1.1 1 1\r\n")},
    {"an octet too large", BYTES("PROXY TCP4 1.1.1.256 1.1.1.1 1 1\r\n")},
    {"a zone", BYTES("PROXY TCP6 fe80::1%eth0 ::1 1 1\r\n")},
    {"a port too large", BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 65536 1\r\n")},
    {"a port with a zero", BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 01 1\r\n")},
    {"a port with a sign", BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 +1 1\r\n")},
    {"no port", BYTES("PROXY TCP4 1.1.1.1 1.1.1.1  1\r\n")},
    {"LF alone", BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1 1\n")},
    {"CR inside", BYTES("PROXY TCP4 1.1.1.1\r 1.1.1.1 1 1\r\n")},
    {"NUL inside", BYTES("PROXY TCP4 1.1.1.1\0 1.1.1.1 1 1\r\n")},
    {"version 1 of the binary", BYTES(SIGNATURE "\x11\x11\0\x0c" IP4)},
    {"version 3", BYTES(SIGNATURE "\x31\x11\0\x0c" IP4)},
    {"an unknown command", BYTES(SIGNATURE "\x22\x11\0\x0c" IP4)},
    {"an unknown family", BYTES(SIGNATURE "\x21\x41\0\x0c" IP4)},
    {"an unknown transport", BYTES(SIGNATURE "\x21\x13\0\x0c" IP4)},
    {"datagrams", BYTES(SIGNATURE "\x21\x12\0\x0c" IP4)},
    {"no room for the addresses", BYTES(SIGNATURE "\x21\x11\0\x0b" IP4)},
    {"addresses of the other family", BYTES(SIGNATURE "\x21\x21\0\x0c" IP4)},
    {"half a TLV", BYTES(SIGNATURE "\x21\x11\0\x0e" IP4 "\x04\0")},
    {"a TLV longer than the rest", BYTES(SIGNATURE "\x21\x11\0\x10" IP4 "\x04\0\x02x")},
    {"longer than any", BYTES(SIGNATURE "\x21\x11\x0f\xf1")},
};

START_TEST(valid_headers_give_source_and_destination)
{
    struct proxy_header header;
    struct str whole = good[_i].bytes;
    char text[128];
    char followed[512];

    ck_assert_int_eq(proxy_header_parse(whole, &header), (ssize_t)whole.length);
    ck_assert_str_eq(shown(&header.source, text), good[_i].source);
    ck_assert_str_eq(shown(&header.destination, text), good[_i].destination);
    for (size_t i = 0; i < whole.length; i++) {
        ssize_t early = proxy_header_parse(str_slice(whole, 0, i), &header);

        ck_assert_msg(early == 0, "%zd at %zu", early, i);
    }
    memcpy(followed, whole.data, whole.length);
    memcpy(followed + whole.length, "GET /\r\n", 7);
    ck_assert_int_eq(proxy_header_parse(str_of(followed, whole.length + 7), &header), (ssize_t)whole.length);
}
END_TEST

START_TEST(invalid_headers_are_rejected)
{
    struct proxy_header header = {.source = {.any = {.sa_family = 77}}};

    ck_assert_msg(proxy_header_parse(bad[_i].bytes, &header) == -EPROTO, "%s", bad[_i].why);
    ck_assert_int_eq(header.source.any.sa_family, 77);
}
END_TEST

START_TEST(line_without_an_end_is_rejected_at_its_limit)
{
    struct proxy_header header;
    char line[200];

    memset(line, ' ', sizeof(line));
    memcpy(line, "PROXY UNKNOWN", 13);
    ck_assert_int_eq(proxy_header_parse(str_of(line, 106), &header), 0);
    ck_assert_int_eq(proxy_header_parse(str_of(line, 107), &header), -EPROTO);
    memcpy(line + 105, "\r\n", 2);
    ck_assert_int_eq(proxy_header_parse(str_of(line, 107), &header), 107);
    memcpy(line + 105, " \r\n", 3);
    ck_assert_int_eq(proxy_header_parse(str_of(line, 108), &header), -EPROTO);
}
END_TEST

/* The result of parsing a written header is the original. Addresses of different families are written as UNKNOWN. */
START_TEST(written_headers_are_parsed)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        for (unsigned version = 1; version <= 2; version++) {
            char into[PROXY_HEADER_WRITTEN];
            char text[128];
            struct proxy_header header;
            struct proxy_header again;

            ck_assert_int_gt(proxy_header_parse(good[i].bytes, &header), 0);
            size_t length = proxy_header_write(&header.source.any, &header.destination.any, version, into);
            ck_assert_uint_le(length, sizeof(into));
            ck_assert_int_eq(proxy_header_parse(str_of(into, length), &again), (ssize_t)length);
            ck_assert_str_eq(shown(&again.source, text), good[i].source);
            ck_assert_str_eq(shown(&again.destination, text), good[i].destination);
            ck_assert_int_eq(into[0] == 'P', version == 1);
            header.destination.any.sa_family = AF_UNIX;
            length = proxy_header_write(&header.source.any, &header.destination.any, version, into);
            ck_assert_int_eq(proxy_header_parse(str_of(into, length), &again), (ssize_t)length);
            ck_assert_int_eq(again.source.any.sa_family, AF_UNSPEC);
        }
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, valid_headers_give_source_and_destination, 0, sizeof(good) / sizeof(good[0]));
    tcase_add_loop_test(tcase, invalid_headers_are_rejected, 0, sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(tcase, line_without_an_end_is_rejected_at_its_limit);
    tcase_add_test(tcase, written_headers_are_parsed);
}

int main(void)
{
    return run_suite("proxy_header", add_tests);
}
