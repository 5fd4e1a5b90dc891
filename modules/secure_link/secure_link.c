/*
 * `secure_link`: signed URLs. A URL contains the hash of a text that includes a secret, and optionally an expiry
 * time. $secure_link is "1" for a valid URL, "0" for an expired one, and empty otherwise.
 */
#include "server/module.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stddef.h>

#define SUM_MAX 64 /* upper bound of a hash in base64 */

struct secure_link_conf {
    const struct template *link;   /* "HASH" or "HASH,TIME"; NULL: inactive */
    const struct template *md5;
    const struct template *sha256;
    bool required;
};

enum link_status { NOT_CHECKED, CHECKING, INVALID, EXPIRED, VALID };

/*
 * A URL is verified once per configuration, and the result applies after internal redirects: the signature covers
 * the original URL.
 */
struct link_check {
    const struct template *link, *text; /* the templates of `status` */
    enum link_status status;
};

#define AT(field) offsetof(struct secure_link_conf, field)

extern const struct module module_secure_link;

static int check_secure_link(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct secure_link_conf *own = conf;
    const struct conf_node *md5 = conf_map_get(at, STR("secure_link_md5"));
    const struct conf_node *sha256 = conf_map_get(at, STR("secure_link_sha256"));
    const struct conf_node *required = conf_map_get(at, STR("secure_link_required"));

    if (md5 && sha256) {
        conf_error(reader->errors, sha256->mark, STR("delete one of the two"),
                   "secure_link_md5 and secure_link_sha256 are set in one scope");
        return -EINVAL;
    }
    if (md5) /* the innermost directive applies */
        own->sha256 = NULL;
    if (sha256)
        own->md5 = NULL;
    if (required && own->required && (!own->link || (!own->md5 && !own->sha256))) {
        conf_error(reader->errors, required->mark,
                   STR("add secure_link: \"$arg_sum,$arg_expires\" and secure_link_sha256: ..."),
                   "secure_link_required needs secure_link, and secure_link_sha256 or secure_link_md5");
        return -EINVAL;
    }
    return 0;
}

static const struct directive directives[] = {
    {.name = "secure_link",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(link),
     .example = "secure_link: \"$arg_sum,$arg_expires\"",
     .help = "The contents of a signed URL: its hash in base64url, optionally followed by a comma and the expiry "
             "time, in seconds since 1970. $secure_link is then 1 if the URL is valid, 0 if it has expired, and "
             "empty otherwise; $secure_link_expires is that time."},
    {.name = "secure_link_sha256",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(sha256),
     .example = "secure_link_sha256: \"$secure_link_expires$uri$remote_addr secret\"",
     .help = "The text whose SHA-256 is the hash. It should end with a secret, and contain everything that the URL "
             "grants: $uri, $secure_link_expires, and optionally $remote_addr. printf '%s' TEXT | openssl sha256 "
             "-binary | basenc --base64url"},
    {.name = "secure_link_md5",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(md5),
     .example = "secure_link_md5: \"$secure_link_expires$uri$remote_addr secret\"",
     .help = "As secure_link_sha256, but with MD5, for URLs made for nginx. Use secure_link_sha256 for new URLs."},
    {.name = "secure_link_required",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(required),
     .default_value = "off",
     .example = "secure_link_required: on",
     .help = "Answer URLs without a valid signature with 403, and expired ones with 410. It is one of the checks "
             "of satisfy."},
    {0},
};

static struct exchange *exchange_of(const void *subject)
{
    return (struct exchange *)(uintptr_t)subject;
}

/* Splits the value of `secure_link` into hash and time; data of the time is NULL without one. */
static bool split_link(struct exchange *x, const struct secure_link_conf *own, struct str *out_sum,
                       struct str *out_time)
{
    struct str link = own->link ? exchange_eval(x, own->link) : (struct str){NULL, 0};
    ssize_t comma = str_rfind(link, ',');

    *out_sum = comma >= 0 ? str_slice(link, 0, (size_t)comma) : link;
    *out_time = comma >= 0 ? str_skip(link, (size_t)comma + 1) : (struct str){NULL, 0};
    return link.data != NULL;
}

/* Converts to the alphabet of base64url, without padding. */
static size_t normalise_base64(struct str sum, char out[SUM_MAX])
{
    size_t length = 0;

    while (str_ends(sum, STR("=")))
        sum.length--;
    for (; length < sum.length && length < SUM_MAX; length++) {
        char c = sum.data[length];

        out[length] = c == '+' ? '-' : c == '/' ? '_' : c;
    }
    return sum.length <= SUM_MAX ? length : 0;
}

static const struct template *text_of(const struct secure_link_conf *own)
{
    return own->sha256 ? own->sha256 : own->md5;
}

static bool hash_matches(struct exchange *x, const struct secure_link_conf *own, struct str sum)
{
    struct str text = exchange_eval(x, text_of(own));
    unsigned char digest[EVP_MAX_MD_SIZE], encoded[2 * EVP_MAX_MD_SIZE];
    char received[SUM_MAX], expected[SUM_MAX];
    unsigned size = 0;
    size_t length;
    int count;

    if (!text.data ||
        EVP_Digest(text.data, text.length, digest, &size, own->sha256 ? EVP_sha256() : EVP_md5(), NULL) != 1)
        return false;
    count = EVP_EncodeBlock(encoded, digest, (int)size);
    length = normalise_base64(str_of((const char *)encoded, (size_t)count), expected);
    return normalise_base64(sum, received) == length && CRYPTO_memcmp(received, expected, length) == 0;
}

/* Without a time the URL does not expire; an invalid time makes it invalid. */
static enum link_status check_time(struct exchange *x, struct str time)
{
    uint64_t seconds;

    if (!time.data)
        return VALID;
    if (str_to_u64(time, &seconds) < 0)
        return INVALID;
    return seconds < (uint64_t)clock_wall_s(exchange_clock(x)) ? EXPIRED : VALID;
}

static enum link_status verify_link(struct exchange *x, const struct secure_link_conf *own)
{
    struct link_check *check = exchange_state(x, &module_secure_link, sizeof(*check));
    struct str sum, time;

    if (!check)
        return INVALID;
    if (check->link == own->link && check->text == text_of(own) && check->status != NOT_CHECKED)
        return check->status == CHECKING ? INVALID : check->status; /* the text contains $secure_link */
    *check = (struct link_check){own->link, text_of(own), CHECKING};
    if (!split_link(x, own, &sum, &time) || !text_of(own) || !hash_matches(x, own, sum))
        check->status = INVALID;
    else
        check->status = check_time(x, time);
    return check->status;
}

static enum outcome secure_link_handler(struct exchange *x, const void *conf, void *state)
{
    bool any = exchange_satisfies_any(x);

    switch (verify_link(x, conf)) {
    case VALID:
        return OUTCOME_ALLOWED;
    case EXPIRED:
        return exchange_error_response_log(x, any ? 403 : 410, LOG_INFO, "secure_link: the URL has expired");
    case NOT_CHECKED:
    case CHECKING:
    case INVALID:
        break;
    }
    return exchange_error_response_log(x, 403, any ? LOG_INFO : LOG_ERROR,
                                       "secure_link: the signature is missing or invalid");
}

static struct str get_link(const void *subject, struct str parameter, struct arena *arena)
{
    switch (verify_link(exchange_of(subject), exchange_conf(subject, &module_secure_link))) {
    case VALID:
        return STR("1");
    case EXPIRED:
        return STR("0");
    case NOT_CHECKED:
    case CHECKING:
    case INVALID:
        break;
    }
    return STR("");
}

static struct str get_expires(const void *subject, struct str parameter, struct arena *arena)
{
    struct str sum, time;

    if (!split_link(exchange_of(subject), exchange_conf(subject, &module_secure_link), &sum, &time))
        return (struct str){NULL, 0};
    return time;
}

static const struct variable variables[] = {
    {"secure_link", false, get_link, .type = "text",
     .help = "\"1\" for a valid link, \"0\" for an expired one, else empty."},
    {"secure_link_expires", false, get_expires, .type = "seconds",
     .help = "Expiry time of the link, as in secure_link."},
};
static const struct variable_table variable_table = {variables, 2, NULL};

static bool secure_link_idle(const void *conf)
{
    const struct secure_link_conf *own = conf;

    return !own->required;
}

const struct module module_secure_link = {
    .name = "secure_link",
    .directives = directives,
    .conf_size = sizeof(struct secure_link_conf),
    .conf_check = check_secure_link,
    .idle = secure_link_idle,
    .handler = secure_link_handler,
    .variables = &variable_table,
    .access = true,
};
