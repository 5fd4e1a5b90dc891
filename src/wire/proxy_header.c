/*
 * The PROXY protocol, parsed strictly: an ambiguous header is rejected.
 */
#include "wire/proxy_header.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

enum { VERSION_1_MAX = 107, VERSION_2_FIXED = 16, TLV_FIXED = 3 };

static const char signature[12] = "\r\n\r\n\0\r\nQUIT\n";

/* Version 1: "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n" */

/* Parses a decimal up to 65535 without leading zeros. */
static bool read_port(struct str text, in_port_t *out_port)
{
    uint64_t value;

    if (text.length > 5 || str_to_u64(text, &value) < 0 || value > 65535 ||
        (text.length > 1 && text.data[0] == '0'))
        return false;
    *out_port = htons((uint16_t)value);
    return true;
}

static bool read_address(struct str text, struct str port, int family, union proxy_address *out_address)
{
    char terminated[INET6_ADDRSTRLEN];

    if (text.length >= sizeof(terminated))
        return false;
    memcpy(terminated, text.data, text.length);
    terminated[text.length] = '\0';
    out_address->any.sa_family = (sa_family_t)family;
    if (family == AF_INET)
        return inet_pton(family, terminated, &out_address->ip4.sin_addr) == 1 &&
               read_port(port, &out_address->ip4.sin_port);
    return inet_pton(family, terminated, &out_address->ip6.sin6_addr) == 1 &&
           read_port(port, &out_address->ip6.sin6_port);
}

/* Parses the part between "PROXY " and CRLF. */
static int parse_words(struct str line, struct proxy_header *header)
{
    struct str family = str_cut(&line, ' ');
    struct str words[4];

    if (str_equal(family, STR("UNKNOWN")))
        return 0; /* the rest of the line must be ignored */
    if (!str_equal(family, STR("TCP4")) && !str_equal(family, STR("TCP6")))
        return -EPROTO;
    for (int i = 0; i < 4; i++) {
        if (!line.data)
            return -EPROTO;
        words[i] = str_cut(&line, ' ');
    }
    if (line.data || memchr(words[0].data, '\0', words[0].length) ||
        memchr(words[1].data, '\0', words[1].length))
        return -EPROTO;
    const int kind = str_equal(family, STR("TCP4")) ? AF_INET : AF_INET6;

    return read_address(words[0], words[2], kind, &header->source) &&
                   read_address(words[1], words[3], kind, &header->destination)
               ? 0
               : -EPROTO;
}

static ssize_t parse_text(struct str bytes, struct proxy_header *out_header)
{
    struct str line = str_slice(bytes, 0, VERSION_1_MAX);
    ssize_t end = str_search(line, STR("\r\n"));
    struct proxy_header header = {0};

    if (end < 0)
        return line.length < VERSION_1_MAX && str_find(line, '\n') < 0 ? 0 : -EPROTO;
    line.length = (size_t)end;
    if (str_find(line, '\r') >= 0 || str_find(line, '\n') >= 0 || parse_words(str_skip(line, 6), &header) < 0)
        return -EPROTO;
    *out_header = header;
    return end + 2;
}

/* Version 2: signature, version and command, family and transport, length, addresses, TLVs. */

static size_t big_endian_16(const char *at)
{
    return (size_t)(uint8_t)at[0] << 8 | (uint8_t)at[1];
}

/* Checks a sequence of type, length, value that ends with the last byte. */
static bool are_tlvs(struct str rest)
{
    while (rest.length > 0) {
        if (rest.length < TLV_FIXED || rest.length - TLV_FIXED < big_endian_16(rest.data + 1))
            return false;
        rest = str_skip(rest, TLV_FIXED + big_endian_16(rest.data + 1));
    }
    return true;
}

static void parse_ip4(const char *at, struct proxy_header *header)
{
    header->source.ip4.sin_family = header->destination.ip4.sin_family = AF_INET;
    memcpy(&header->source.ip4.sin_addr, at, 4);
    memcpy(&header->destination.ip4.sin_addr, at + 4, 4);
    memcpy(&header->source.ip4.sin_port, at + 8, 2);
    memcpy(&header->destination.ip4.sin_port, at + 10, 2);
}

static void parse_ip6(const char *at, struct proxy_header *header)
{
    header->source.ip6.sin6_family = header->destination.ip6.sin6_family = AF_INET6;
    memcpy(&header->source.ip6.sin6_addr, at, 16);
    memcpy(&header->destination.ip6.sin6_addr, at + 16, 16);
    memcpy(&header->source.ip6.sin6_port, at + 32, 2);
    memcpy(&header->destination.ip6.sin6_port, at + 34, 2);
}

/* Address bytes by family: unspecified, IPv4, IPv6, Unix. */
static const uint8_t address_bytes[] = {0, 12, 36, 216};

static int parse_addresses(struct str rest, uint8_t family, bool local, struct proxy_header *header)
{
    if (family >> 4 >= sizeof(address_bytes) || (family & 15) > 2)
        return -EPROTO;
    if (local || family >> 4 == 0) /* its addresses must be ignored */
        return 0;
    if (rest.length < address_bytes[family >> 4] || !are_tlvs(str_skip(rest, address_bytes[family >> 4])))
        return -EPROTO;
    if (family >> 4 == 3)
        return 0;
    if ((family & 15) != 1) /* STREAM */
        return -EPROTO;
    if (family >> 4 == 1)
        parse_ip4(rest.data, header);
    else
        parse_ip6(rest.data, header);
    return 0;
}

static ssize_t parse_binary(struct str bytes, struct proxy_header *out_header)
{
    struct proxy_header header = {0};
    size_t length;

    if (bytes.length < VERSION_2_FIXED)
        return 0;
    length = big_endian_16(bytes.data + 14);
    if (bytes.data[12] != 0x20 && bytes.data[12] != 0x21)
        return -EPROTO;
    if (length > PROXY_HEADER_MAX - VERSION_2_FIXED)
        return -EPROTO;
    if (bytes.length < VERSION_2_FIXED + length)
        return 0;
    if (parse_addresses(str_of(bytes.data + VERSION_2_FIXED, length), (uint8_t)bytes.data[13],
                        bytes.data[12] == 0x20, &header) < 0)
        return -EPROTO;
    *out_header = header;
    return (ssize_t)(VERSION_2_FIXED + length);
}

static bool may_become(struct str bytes, struct str beginning)
{
    return str_starts(beginning, str_slice(bytes, 0, beginning.length));
}

ssize_t proxy_header_parse(struct str bytes, struct proxy_header *out_header)
{
    const struct str text = STR("PROXY ");
    const struct str binary = {signature, sizeof(signature)};

    if (!may_become(bytes, text) && !may_become(bytes, binary))
        return -EPROTO;
    if (bytes.length >= text.length && may_become(bytes, text))
        return parse_text(bytes, out_header);
    return bytes.length >= binary.length ? parse_binary(bytes, out_header) : 0;
}

static size_t write_text(const struct sockaddr *source, const struct sockaddr *destination, char *into)
{
    const union proxy_address *from = (const union proxy_address *)(const void *)source;
    const union proxy_address *to = (const union proxy_address *)(const void *)destination;
    bool ip4 = source->sa_family == AF_INET;
    char first[INET6_ADDRSTRLEN];
    char second[INET6_ADDRSTRLEN];

    if (ip4) {
        inet_ntop(AF_INET, &from->ip4.sin_addr, first, sizeof(first));
        inet_ntop(AF_INET, &to->ip4.sin_addr, second, sizeof(second));
    } else {
        inet_ntop(AF_INET6, &from->ip6.sin6_addr, first, sizeof(first));
        inet_ntop(AF_INET6, &to->ip6.sin6_addr, second, sizeof(second));
    }
    return (size_t)snprintf(into, PROXY_HEADER_WRITTEN, "PROXY TCP%c %s %s %u %u\r\n", ip4 ? '4' : '6', first,
                            second, ntohs(ip4 ? from->ip4.sin_port : from->ip6.sin6_port),
                            ntohs(ip4 ? to->ip4.sin_port : to->ip6.sin6_port));
}

static size_t write_binary(const struct sockaddr *source, const struct sockaddr *destination, char *into)
{
    const union proxy_address *from = (const union proxy_address *)(const void *)source;
    const union proxy_address *to = (const union proxy_address *)(const void *)destination;
    bool ip4 = source->sa_family == AF_INET;
    size_t address = ip4 ? 4 : 16;
    char *at = into + VERSION_2_FIXED;

    into[12] = 0x21;
    into[13] = ip4 ? 0x11 : 0x21;
    into[14] = 0;
    into[15] = (char)(2 * address + 4);
    memcpy(at, ip4 ? (const void *)&from->ip4.sin_addr : &from->ip6.sin6_addr, address);
    memcpy(at + address, ip4 ? (const void *)&to->ip4.sin_addr : &to->ip6.sin6_addr, address);
    memcpy(at + 2 * address, ip4 ? &from->ip4.sin_port : &from->ip6.sin6_port, 2);
    memcpy(at + 2 * address + 2, ip4 ? &to->ip4.sin_port : &to->ip6.sin6_port, 2);
    return VERSION_2_FIXED + 2 * address + 4;
}

size_t proxy_header_write(const struct sockaddr *source, const struct sockaddr *destination, unsigned version,
                          char into[PROXY_HEADER_WRITTEN])
{
    bool known = source->sa_family == destination->sa_family &&
                 (source->sa_family == AF_INET || source->sa_family == AF_INET6);

    if (version == 1) {
        if (known)
            return write_text(source, destination, into);
        memcpy(into, "PROXY UNKNOWN\r\n", 15);
        return 15;
    }
    memcpy(into, signature, sizeof(signature));
    if (known)
        return write_binary(source, destination, into);
    memcpy(into + sizeof(signature), "\x20\0\0\0", 4);
    return VERSION_2_FIXED;
}
