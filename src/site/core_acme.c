/*
 * The block `acme`: its keys and their checks.
 */
#include "base/limits.h"
#include "site/core.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>

#define AT(field) offsetof(struct acme_settings, field)

#define HINT_DIRECTORY STR("write: directory: https://acme-v02.api.letsencrypt.org/directory")

/* In the order of enum acme_client and enum acme_key. */
static const char *const clients[] = {"uacme", "lego", NULL};
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
     .help = "The program that requests certificates, uacme or lego. It must be installed (apt-get install)."},
    {.name = "challenge",
     .type = DIRECTIVE_CHOICE,
     .offset = AT(challenge),
     .choices = acme_challenge_types,
     .default_value = "http-01",
     .help = "How the authority validates names: `http-01` by a request to port 80, `tls-alpn-01` (RFC 8737) by a TLS "
             "handshake with port 443. This server answers on all its addresses, with `ssl` for tls-alpn-01; "
             "the port of one of them must be reachable under each name. `dns-01` by a TXT record, which the client "
             "lego publishes at the DNS provider `dns`; it permits wildcards. lego cannot use tls-alpn-01."},
    {.name = "dns",
     .type = DIRECTIVE_TEXT,
     .offset = AT(dns),
     .example = "dns: cloudflare",
     .help = "The DNS provider of dns-01, as lego names it; `lego dnshelp` lists them with the variables of their "
             "credentials (`environment`)."},
    {.name = "dns_resolvers",
     .type = DIRECTIVE_WORDS,
     .offset = AT(dns_resolvers),
     .example = "dns_resolvers: [192.0.2.53, '[2001:db8::53]:53']",
     .help = "Name servers that the client queries, if those of the system do not have the public zone."},
    {.name = "dns_propagation",
     .type = DIRECTIVE_SWITCH,
     .offset = AT(dns_propagation),
     .default_value = "on",
     .help = "Whether the client waits until all authoritative name servers have the TXT record of dns-01, before the "
             "authority looks it up."},
    {.name = "environment",
     .type = DIRECTIVE_PATH,
     .offset = AT(environment),
     .example = "environment: /etc/sluice/acme.env",
     .help = "File with variables for the client, one NAME=VALUE per line, as the credentials of the DNS provider. "
             "Only its owner may have access to it (mode 0600). It is read by the process that runs the client, as the "
             "user that starts the server, at each start and reload; its values are never logged."},
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
     .secret = true,
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

static void check_client(const struct acme_settings *acme, struct conf_reader *reader, const struct conf_node *at)
{
    bool lego = acme->client == ACME_LEGO;

    if (acme->challenge == ACME_DNS_01 && !lego)
        conf_error(reader->errors, at->mark, STR("write: client: lego"),
                   "acme: the client uacme has no challenge dns-01");
    if (acme->challenge == ACME_TLS_ALPN_01 && lego)
        conf_error(reader->errors, at->mark, STR("write: client: uacme, or: challenge: http-01"),
                   "acme: the client lego cannot leave the challenge tls-alpn-01 to this server");
    if (lego && str_empty(acme->email))
        conf_error(reader->errors, at->mark, STR("write: email: admin@example.org"),
                   "acme: the client lego needs an email address");
}

/* "manual" waits for a person at a terminal. */
static bool provider_valid(struct str name)
{
    for (size_t i = 0; i < name.length; i++) {
        if (!(name.data[i] >= 'a' && name.data[i] <= 'z') && !(name.data[i] >= '0' && name.data[i] <= '9') &&
            name.data[i] != '-')
            return false;
    }
    return is_argument(name, LIMIT_ACME_PROVIDER) && !str_equal(name, STR("manual"));
}

static void check_dns(const struct acme_settings *acme, struct conf_reader *reader, const struct conf_node *at)
{
    if (acme->challenge == ACME_DNS_01 && str_empty(acme->dns))
        conf_error(reader->errors, at->mark, STR("write: dns: PROVIDER; lego dnshelp lists them"),
                   "acme: the challenge dns-01 needs a DNS provider");
    if (acme->challenge != ACME_DNS_01 && !str_empty(acme->dns))
        conf_error(reader->errors, at->mark, STR("write: challenge: dns-01"),
                   "acme.dns has no effect with another challenge than dns-01");
    if (!provider_valid(acme->dns))
        conf_error(reader->errors, at->mark, STR("write one of: lego dnshelp"),
                   "acme.dns: \"" STR_FMT "\" is not a DNS provider that needs no terminal", STR_ARG(acme->dns));
    for (size_t i = 0; i < acme->dns_resolvers.count; i++) {
        struct str resolver = acme->dns_resolvers.items[i];

        if (i >= LIMIT_ACME_RESOLVERS || str_empty(resolver) || str_find(resolver, ',') >= 0 ||
            !is_argument(resolver, LIMIT_ACME_RESOLVER))
            conf_error(reader->errors, at->mark, STR("write: dns_resolvers: [192.0.2.53, '[2001:db8::53]:53']"),
                       "acme.dns_resolvers: \"" STR_FMT "\" is not one of at most %d name servers", STR_ARG(resolver),
                       LIMIT_ACME_RESOLVERS);
    }
}

/* A file that this user cannot examine is checked by the renewal process. */
static void check_environment(const struct acme_settings *acme, struct conf_reader *reader, const struct conf_node *at)
{
    struct str path = arena_copy(reader->arena, acme->environment);
    struct stat state;

    if (str_empty(path) || (stat(path.data, &state) < 0 && errno == EACCES))
        return;
    if (stat(path.data, &state) < 0 || !S_ISREG(state.st_mode))
        conf_error(reader->errors, at->mark, STR("create it with lines NAME=VALUE, and mode 0600"),
                   "acme.environment: \"" STR_FMT "\" is not a file", STR_ARG(path));
    else if (state.st_mode & 077)
        conf_error(reader->errors, at->mark, STR("chmod 600"),
                   "acme.environment: others than the owner of \"" STR_FMT "\" have access to it", STR_ARG(path));
}

void core_acme_check(const struct core_ssl *ssl, struct conf_reader *reader, const struct conf_node *at)
{
    const struct acme_settings *acme = &ssl->acme;
    const struct conf_node *node = conf_map_get(at, STR("acme"));

    if (!node)
        return;
    check_directories(acme, reader, node);
    check_client(acme, reader, node);
    check_dns(acme, reader, node);
    check_environment(acme, reader, node);
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
