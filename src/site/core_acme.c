/*
 * The block `acme`: its keys and their checks.
 */
#include "base/limits.h"
#include "site/core.h"

#include <stddef.h>

#define AT(field) offsetof(struct acme_settings, field)

#define HINT_DIRECTORY STR("write: directory: https://acme-v02.api.letsencrypt.org/directory")

/* In the order of enum acme_client and enum acme_key. */
static const char *const clients[] = {"uacme", NULL};
static const char *const keys[] = {"ec256", "ec384", "rsa2048", "rsa4096", NULL};

const struct directive core_acme_children[] = {
    {.name = "email",
     .type = DIRECTIVE_TEXT,
     .offset = AT(email),
     .help = "Address of the account; the authority may send messages to it."},
    {.name = "directory",
     .type = DIRECTIVE_WORDS,
     .offset = AT(directories),
     .default_value = "https://acme-v02.api.letsencrypt.org/directory",
     .help = "URLs of certificate authorities; the next one is tried if the former one fails. The client verifies them "
             "by the certificates that the system trusts."},
    {.name = "client",
     .type = DIRECTIVE_CHOICE,
     .offset = AT(client),
     .choices = clients,
     .default_value = "uacme",
     .help = "The program that requests certificates. It must be installed."},
    {.name = "challenge",
     .type = DIRECTIVE_CHOICE,
     .offset = AT(challenge),
     .choices = acme_challenge_types,
     .default_value = "http-01",
     .help = "How the authority validates names: `http-01` by a request to port 80, `tls-alpn-01` (RFC 8737) by a TLS "
             "handshake with port 443. This server answers on all its addresses, with `ssl` for tls-alpn-01; "
             "the port of one of them must be reachable under each name."},
    {.name = "key_type",
     .type = DIRECTIVE_CHOICE,
     .offset = AT(key_type),
     .choices = keys,
     .default_value = "ec256",
     .help = "Type of the key; each certificate has a new one."},
    {.name = "eab_key_id",
     .type = DIRECTIVE_TEXT,
     .offset = AT(eab_key_id),
     .help = "Key id of an external account, for authorities that require one."},
    {.name = "eab_key",
     .type = DIRECTIVE_TEXT,
     .offset = AT(eab_key),
     .help = "The key of the external account, in base64url; ${NAME} reads it from the environment."},
    {.name = "state",
     .type = DIRECTIVE_PATH,
     .offset = AT(state),
     .default_value = "/var/lib/sluice/acme",
     .help = "Directory of accounts, keys, certificates and challenges; the server creates it, but not its parent. "
             "Several machines may share it: a lock prevents that two of them request the same certificate."},
    {.name = "user",
     .type = DIRECTIVE_TEXT,
     .offset = AT(user),
     .help = "The user that runs the client if the server is started by root; by default that of the workers. With a "
             "user of its own, workers have no permission to read accounts and keys."},
    {.name = "retry",
     .type = DIRECTIVE_DURATION,
     .offset = AT(retry_ms),
     .low = 1000,
     .high = LIMIT_ACME_RETRY_MS,
     .default_value = "5m",
     .help = "Delay after the first failure; it is doubled after each further one."},
    {.name = "timeout",
     .type = DIRECTIVE_DURATION,
     .offset = AT(timeout_ms),
     .low = 1000,
     .high = 3600 * 1000,
     .default_value = "5m",
     .help = "The client is killed if it runs longer."},
    {0},
};

bool core_acme_used(const struct core_ssl *ssl)
{
    const struct core_file *files = ssl->certificates.items;

    return ssl->certificates.count == 1 && str_equal(files[0].path, STR("acme"));
}

/* Printable ASCII without blanks that is not an option. */
static bool is_argument(struct str text, size_t max)
{
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    }
    return text.length <= max && !str_starts(text, STR("-"));
}

/* base64url, with or without padding. */
static bool is_key(struct str text)
{
    while (str_ends(text, STR("=")))
        text.length--;
    return text.length <= LIMIT_ACME_EAB && acme_base64url_valid(text);
}

static void check_directories(const struct acme_settings *acme, struct conf_reader *reader, const struct conf_node *at)
{
    if (acme->directories.count == 0)
        conf_error(reader->errors, at->mark, HINT_DIRECTORY, "acme.directory has no value");
    for (size_t i = 0; i < acme->directories.count; i++) {
        struct str url = acme->directories.items[i];

        if (!is_argument(url, LIMIT_ACME_URL) || !str_starts(url, STR("https://")) || url.length < 10)
            conf_error(reader->errors, at->mark, HINT_DIRECTORY,
                       "\"" STR_FMT "\" is not an https:// URL of an authority's directory", STR_ARG(url));
    }
}

void core_acme_check(const struct core_ssl *ssl, struct conf_reader *reader, const struct conf_node *at)
{
    const struct acme_settings *acme = &ssl->acme;
    const struct conf_node *node = conf_map_get(at, STR("acme"));

    if (!node)
        return;
    check_directories(acme, reader, node);
    if (!is_argument(acme->email, LIMIT_ACME_EMAIL) || (acme->email.length && str_find(acme->email, '@') < 1))
        conf_error(reader->errors, node->mark, STR("write: email: admin@example.org"),
                   "acme.email: \"" STR_FMT "\" is not an email address", STR_ARG(acme->email));
    if (str_empty(acme->eab_key_id) != str_empty(acme->eab_key))
        conf_error(reader->errors, node->mark, STR("set both, or none"),
                   "acme: eab_key_id and eab_key belong together");
    if (!is_argument(acme->eab_key_id, LIMIT_ACME_EAB) || str_find(acme->eab_key_id, ':') >= 0 ||
        (!str_empty(acme->eab_key) && !is_key(acme->eab_key)))
        conf_error(reader->errors, node->mark, STR("copy both from the page of your account"),
                   "acme: eab_key_id is printable ASCII without colons, eab_key is base64url");
}
