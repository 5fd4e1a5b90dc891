/*
 * The algorithm of apr_md5_encode() in Apache's APR: MD5-crypt with another magic string. OpenSSL computes MD5; its
 * first failure is recorded in `failed` and makes the result a mismatch.
 */
#include "apr1.h"

#include "base/limits.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#define MAGIC       "$apr1$"
#define ROUNDS      1000
#define DIGEST_SIZE 16
#define SALT_SIZE   8
#define TEXT_SIZE   22 /* characters of the digest, six bits each */

struct md5 {
    EVP_MD_CTX *state;
    bool failed;
};

static void md5_begin(struct md5 *md5)
{
    md5->failed = md5->failed || EVP_DigestInit_ex(md5->state, EVP_md5(), NULL) != 1;
}

static void md5_add(struct md5 *md5, const void *bytes, size_t length)
{
    md5->failed = md5->failed || EVP_DigestUpdate(md5->state, bytes, length) != 1;
}

static void md5_end(struct md5 *md5, unsigned char digest[DIGEST_SIZE])
{
    md5->failed = md5->failed || EVP_DigestFinal_ex(md5->state, digest, NULL) != 1;
}

/* Computes the digest that the rounds start from. */
static void first_digest(struct md5 *md5, struct str password, struct str salt, unsigned char digest[DIGEST_SIZE])
{
    size_t left;

    md5_begin(md5);
    md5_add(md5, password.data, password.length);
    md5_add(md5, salt.data, salt.length);
    md5_add(md5, password.data, password.length);
    md5_end(md5, digest);
    md5_begin(md5);
    md5_add(md5, password.data, password.length);
    md5_add(md5, MAGIC, strlen(MAGIC));
    md5_add(md5, salt.data, salt.length);
    for (left = password.length; left > DIGEST_SIZE; left -= DIGEST_SIZE)
        md5_add(md5, digest, DIGEST_SIZE);
    md5_add(md5, digest, left);
    /* As in APR: for each bit of the length, a zero byte if it is set, else the first byte of the password. */
    for (size_t bits = password.length; bits; bits >>= 1)
        md5_add(md5, bits & 1 ? "" : password.data, 1);
    md5_end(md5, digest);
}

static void one_round(struct md5 *md5, unsigned number, struct str password, struct str salt,
                      unsigned char digest[DIGEST_SIZE])
{
    struct str last = str_of((const char *)digest, DIGEST_SIZE);
    struct str front = number % 2 ? password : last, back = number % 2 ? last : password;

    md5_begin(md5);
    md5_add(md5, front.data, front.length);
    if (number % 3)
        md5_add(md5, salt.data, salt.length);
    if (number % 7)
        md5_add(md5, password.data, password.length);
    md5_add(md5, back.data, back.length);
    md5_end(md5, digest);
}

static char *encode_base64_crypt(char *into, unsigned bits, unsigned characters)
{
    static const char alphabet[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    for (; characters > 0; characters--, bits >>= 6)
        *into++ = alphabet[bits & 63];
    return into;
}

/* Encodes three bytes at a time, in the order of APR. */
static void encode_digest(const unsigned char digest[DIGEST_SIZE], char text[TEXT_SIZE])
{
    static const unsigned char order[][3] = {{0, 6, 12}, {1, 7, 13}, {2, 8, 14}, {3, 9, 15}, {4, 10, 5}};

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        unsigned high = digest[order[i][0]], middle = digest[order[i][1]], low = digest[order[i][2]];

        text = encode_base64_crypt(text, high << 16 | middle << 8 | low, 4);
    }
    encode_base64_crypt(text, digest[11], 2);
}

/* The salt ends at the next '$', and has at most SALT_SIZE bytes. */
static struct str read_salt(struct str *rest)
{
    struct str salt = str_cut(rest, '$');

    return str_slice(salt, 0, salt.length < SALT_SIZE ? salt.length : SALT_SIZE);
}

bool apr1_matches(const char *password, struct str hash)
{
    struct str secret = str_from(password), rest = str_skip(hash, strlen(MAGIC)), salt = read_salt(&rest);
    unsigned char digest[DIGEST_SIZE] = {0};
    char text[TEXT_SIZE];
    struct md5 md5 = {0};
    bool good;

    if (!str_starts(hash, STR(MAGIC)) || secret.length >= LIMIT_LOGIN_TEXT)
        return false;
    md5.state = EVP_MD_CTX_new();
    md5.failed = !md5.state;
    first_digest(&md5, secret, salt, digest);
    for (unsigned i = 0; i < ROUNDS; i++)
        one_round(&md5, i, secret, salt, digest);
    EVP_MD_CTX_free(md5.state);
    encode_digest(digest, text);
    /* A hash with a salt longer than SALT_SIZE is malformed. */
    good = !md5.failed && hash.length == strlen(MAGIC) + salt.length + 1 + TEXT_SIZE && rest.length == TEXT_SIZE &&
           CRYPTO_memcmp(rest.data, text, TEXT_SIZE) == 0;
    OPENSSL_cleanse(digest, sizeof(digest));
    OPENSSL_cleanse(text, sizeof(text));
    return good;
}
