/*
 * Stores, reads and removes challenges of tls-alpn-01: one line, "IDENTIFIER DIGEST".
 */
#include "acme/acme_tls_alpn.h"

#include "acme/acme.h"
#include "acme/acme_challenge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

enum { DIGEST_TEXT = 43, DIGEST_BLOCK = 44, TEXT_SPACE = LIMIT_ACME_NAME + DIGEST_TEXT + 3 };

/* 1.2.0.192.in-addr.arpa, or 32 nibbles and ip6.arpa. False: not an IP address. */
static bool reverse_name(const char *address, char name[LIMIT_ACME_NAME + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[16];
    char *end = name;

    if (inet_pton(AF_INET, address, bytes) == 1) {
        snprintf(name, LIMIT_ACME_NAME + 1, "%u.%u.%u.%u.in-addr.arpa", bytes[3], bytes[2], bytes[1], bytes[0]);
        return true;
    }
    if (inet_pton(AF_INET6, address, bytes) != 1)
        return false;
    for (size_t i = sizeof(bytes); i-- > 0;) {
        *end++ = digits[bytes[i] & 15];
        *end++ = '.';
        *end++ = digits[bytes[i] >> 4];
        *end++ = '.';
    }
    memcpy(end, "ip6.arpa", sizeof("ip6.arpa"));
    return true;
}

/* Writes the name that the authority sends as SNI for an identifier. False: an invalid identifier. */
static bool server_name_of(struct str identifier, char name[LIMIT_ACME_NAME + 1])
{
    char text[LIMIT_ACME_NAME + 1];

    if (str_empty(identifier) || identifier.length > LIMIT_ACME_NAME)
        return false;
    snprintf(text, sizeof(text), STR_FMT, STR_ARG(identifier));
    if (reverse_name(text, name))
        return true;
    memcpy(name, text, sizeof(text));
    return acme_name_valid(identifier);
}

static bool name_file(struct str identifier, char file[LIMIT_ACME_NAME + 2])
{
    char name[LIMIT_ACME_NAME + 1];

    if (!server_name_of(identifier, name))
        return false;
    snprintf(file, LIMIT_ACME_NAME + 2, "%s.", name);
    return true;
}

static bool decode_digest(struct str text, unsigned char digest[ACME_DIGEST])
{
    unsigned char padded[DIGEST_BLOCK + 1] = "", bytes[DIGEST_BLOCK];

    if (text.length != DIGEST_TEXT || !acme_base64url_valid(text))
        return false;
    for (size_t i = 0; i < text.length; i++)
        padded[i] = text.data[i] == '-' ? '+' : text.data[i] == '_' ? '/' : (unsigned char)text.data[i];
    padded[DIGEST_TEXT] = '=';
    if (EVP_DecodeBlock(bytes, padded, DIGEST_BLOCK) != ACME_DIGEST + 1) /* padding counts as a byte */
        return false;
    memcpy(digest, bytes, ACME_DIGEST);
    return true;
}

int acme_tls_alpn_store(const char *folder, struct str identifier, struct str digest)
{
    unsigned char bytes[ACME_DIGEST];
    char file[LIMIT_ACME_NAME + 2], text[TEXT_SPACE];
    int length;

    if (!name_file(identifier, file) || !decode_digest(digest, bytes))
        return -EINVAL;
    length = snprintf(text, sizeof(text), STR_FMT " " STR_FMT "\n", STR_ARG(identifier), STR_ARG(digest));
    return acme_challenge_file_write(folder, file, str_of(text, (size_t)length));
}

int acme_tls_alpn_remove(const char *folder, struct str identifier)
{
    char file[LIMIT_ACME_NAME + 2];

    return name_file(identifier, file) ? acme_challenge_file_remove(folder, file) : -EINVAL;
}

static bool parse_challenge(struct str text, struct str server_name, struct acme_tls_alpn *challenge)
{
    char name[LIMIT_ACME_NAME + 1];
    struct str identifier = str_cut(&text, ' ');

    if (!text.data || !str_ends(text, STR("\n")) || !server_name_of(identifier, name) ||
        !str_equal(str_from(name), server_name))
        return false;
    snprintf(challenge->identifier, sizeof(challenge->identifier), STR_FMT, STR_ARG(identifier));
    return decode_digest(str_of(text.data, text.length - 1), challenge->digest);
}

int acme_tls_alpn_read(const char *folder, struct str server_name, struct acme_tls_alpn *out_challenge)
{
    struct acme_tls_alpn challenge;
    char name[LIMIT_ACME_NAME + 1], file[LIMIT_ACME_NAME + 2], text[TEXT_SPACE + 1];
    ssize_t length;

    if (server_name.length > LIMIT_ACME_NAME)
        return -EINVAL;
    for (size_t i = 0; i < server_name.length; i++)
        name[i] = str_lower(server_name.data[i]);
    server_name.data = name;
    if (!acme_name_valid(server_name))
        return -EINVAL;
    snprintf(file, sizeof(file), STR_FMT ".", STR_ARG(server_name));
    length = acme_challenge_file_read(folder, file, text, sizeof(text));
    if (length < 0)
        return (int)length;
    if (!parse_challenge(str_of(text, (size_t)length), server_name, &challenge))
        return -EINVAL;
    *out_challenge = challenge;
    return 0;
}
