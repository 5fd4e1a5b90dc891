/*
 * Parses address ranges, and compares addresses with their prefixes.
 */
#include "base/cidr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

/* True if the first `bits` bits are equal. */
static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8;
    uint8_t mask = (uint8_t)(0xff00u >> bits % 8);

    return memcmp(a, b, whole) == 0 && (bits % 8 == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

static bool has_host_bits(const struct cidr *cidr, unsigned max)
{
    for (unsigned bit = cidr->bits; bit < max; bit++) {
        if (cidr->bytes[bit / 8] & (0x80u >> bit % 8))
            return true;
    }
    return false;
}

/* Converts a range of IPv4-mapped IPv6 addresses to IPv4, as cidr_contains does with addresses. */
static void unmap_ipv4(struct cidr *cidr)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (cidr->family != AF_INET6 || cidr->bits < 96 || memcmp(cidr->bytes, mapped, sizeof(mapped)) != 0)
        return;
    *cidr = (struct cidr){.family = AF_INET,
                          .bits = (uint8_t)(cidr->bits - 96),
                          .bytes = {cidr->bytes[12], cidr->bytes[13], cidr->bytes[14], cidr->bytes[15]}};
}

int cidr_parse(struct str text, struct cidr *out_cidr)
{
    struct str bits = text;
    struct str address = str_cut(&bits, '/');
    struct cidr cidr = {.family = str_find(address, ':') < 0 ? AF_INET : AF_INET6};
    unsigned max = cidr.family == AF_INET ? 32 : 128;
    char terminated[INET6_ADDRSTRLEN];
    uint64_t count = max;

    if (str_equal(text, STR("unix:"))) {
        *out_cidr = (struct cidr){.family = AF_UNIX};
        return 0;
    }
    if (address.length >= sizeof(terminated) ||
        (address.length && memchr(address.data, '\0', address.length)))
        return -EINVAL;
    if (address.length)
        memcpy(terminated, address.data, address.length);
    terminated[address.length] = '\0';
    if (inet_pton(cidr.family, terminated, cidr.bytes) != 1)
        return -EINVAL;
    if (bits.data && (str_to_u64(bits, &count) < 0 || count > max))
        return -EINVAL;
    cidr.bits = (uint8_t)count;
    if (has_host_bits(&cidr, max))
        return -EINVAL;
    unmap_ipv4(&cidr);
    *out_cidr = cidr;
    return 0;
}

bool cidr_contains(const struct cidr *cidr, const struct sockaddr *address)
{
    const struct sockaddr_in *ip4 = (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)(const void *)address;

    if (address->sa_family == AF_UNIX)
        return cidr->family == AF_UNIX;
    if (address->sa_family == AF_INET)
        return cidr->family == AF_INET && same_bits(cidr->bytes, (const uint8_t *)&ip4->sin_addr, cidr->bits);
    if (address->sa_family != AF_INET6)
        return false;
    if (cidr->family == AF_INET && IN6_IS_ADDR_V4MAPPED(&ip6->sin6_addr))
        return same_bits(cidr->bytes, ip6->sin6_addr.s6_addr + 12, cidr->bits);
    return cidr->family == AF_INET6 && same_bits(cidr->bytes, ip6->sin6_addr.s6_addr, cidr->bits);
}
