/*
 * Rules about TLS: ciphers as OpenSSL expands the list, certificates from their files.
 */
#include "lint/lint_config.h"

#include "site/core.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>

static const struct core_ssl *ssl_of(const struct lint_place *place)
{
    return conf_scope_group(place->server->root->values, CORE_SSL);
}

static struct conf_mark mark_of(const struct lint_place *place, const char *name)
{
    const struct conf_node *node = config_find_inherited(place->server->root->values, name);

    return node ? node->mark : place->server->root->values->node->mark;
}

/* The reason why a TLS 1.2 suite is weak; NULL: it is not. */
static const char *cipher_weakness(const SSL_CIPHER *cipher)
{
    if (SSL_CIPHER_get_auth_nid(cipher) == NID_auth_null)
        return "it does not authenticate the server";
    if (SSL_CIPHER_get_bits(cipher, NULL) < 128)
        return "its keys are short";
    if (SSL_CIPHER_get_kx_nid(cipher) == NID_kx_rsa)
        return "without forward secrecy a leaked key decrypts recorded traffic";
    return SSL_CIPHER_is_aead(cipher) ? NULL : "it is not an AEAD: slower, and attacked successfully in the past";
}

static void weak_cipher(struct lint *lint, const struct lint_place *place)
{
    const struct core_ssl *ssl = ssl_of(place);
    SSL_CTX *context;
    struct str list = arena_copy(lint->arena, ssl->ciphers);

    if (!config_listens(lint, place->server, true) || !(ssl->protocols & TLS_PROTOCOL_1_2) || !list.data)
        return;
    context = SSL_CTX_new(TLS_server_method());
    if (context && SSL_CTX_set_cipher_list(context, list.data) == 1) {
        STACK_OF(SSL_CIPHER) *ciphers = SSL_CTX_get_ciphers(context);
        int weak = 0;

        for (int i = 0; i < sk_SSL_CIPHER_num(ciphers); i++) {
            const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(ciphers, i);
            const char *why = cipher_weakness(cipher);

            if (why && weak++ == 0)
                lint_report(lint, mark_of(place, "ssl_ciphers"),
                            STR("omit ssl_ciphers: the built-in list has none of these"),
                            "ssl_ciphers permits %s: %s", SSL_CIPHER_get_name(cipher), why);
        }
    }
    SSL_CTX_free(context);
}

static void old_protocol(struct lint *lint, const struct lint_place *place)
{
    if (config_listens(lint, place->server, true) && !(ssl_of(place)->protocols & TLS_PROTOCOL_1_3))
        lint_report(lint, mark_of(place, "ssl_protocols"), STR("ssl_protocols: [TLSv1.2, TLSv1.3]"),
                    "TLS 1.3 is off: handshakes take one more round trip, and certificates are sent in clear text");
}

/* The first certificate of a PEM file; NULL: none, which the loader reports. Freed by the caller. */
static X509 *certificate_read(struct lint *lint, struct str path)
{
    struct str copy = arena_copy(lint->arena, path);
    FILE *file = copy.data ? fopen(copy.data, "re") : NULL;
    X509 *certificate = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;

    if (file)
        fclose(file);
    return certificate;
}

static void certificate_expired(struct lint *lint, const struct lint_place *place)
{
    const struct core_ssl *ssl = ssl_of(place);
    const struct core_file *files = ssl->certificates.items;

    for (size_t i = 0; config_listens(lint, place->server, true) && i < ssl->certificates.count; i++) {
        X509 *certificate = certificate_read(lint, files[i].path);

        if (certificate && X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
            lint_report(lint, files[i].mark, STR("renew it"), "the certificate in \"" STR_FMT "\" has expired",
                        STR_ARG(files[i].path));
        else if (certificate && X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
            lint_report(lint, files[i].mark, STR("check the clock of this machine"),
                        "the certificate in \"" STR_FMT "\" is not valid yet", STR_ARG(files[i].path));
        X509_free(certificate);
    }
}

/* True if the certificate fits a server_name. A host name replaces a pattern: "x.a.org" for "*.a.org" and ".a.org". */
static bool name_fits(X509 *certificate, struct str name, struct arena *arena)
{
    struct str bare = str_starts(name, STR("*.")) ? str_skip(name, 1) : name;
    struct str host = str_starts(bare, STR(".")) ? arena_printf(arena, "x" STR_FMT, STR_ARG(bare)) : bare;

    return str_ends(name, STR(".*")) ||
           (host.data && X509_check_host(certificate, host.data, host.length, 0, NULL) == 1) ||
           (host.data && X509_check_ip_asc(certificate, arena_copy(arena, host).data, 0) == 1);
}

static bool name_public(struct str name)
{
    static const char *const own[] = {"localhost", ".localhost", ".local",   ".test",   ".internal",
                                      ".lan",      ".home.arpa", ".invalid", ".example"};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (str_ends(name, str_from(own[i])))
            return false;
    }
    return str_find(name, '.') > 0 && !str_starts(name, STR("~"));
}

static bool name_covered(struct lint *lint, const struct core_ssl *ssl, struct str name)
{
    const struct core_file *files = ssl->certificates.items;
    bool covered = ssl->certificates.count == 0;

    for (size_t i = 0; i < ssl->certificates.count && !covered; i++) {
        X509 *certificate = certificate_read(lint, files[i].path);

        covered = !certificate || name_fits(certificate, name, lint->arena);
        X509_free(certificate);
    }
    return covered;
}

static void certificate_name(struct lint *lint, const struct lint_place *place)
{
    const struct core_ssl *ssl = ssl_of(place);
    const struct core_file *files = ssl->certificates.items;

    for (size_t i = 0; config_listens(lint, place->server, true) && i < place->server->names.count; i++) {
        struct str name = place->server->names.items[i];

        if (!str_empty(name) && !str_equal(name, STR("_")) && !str_starts(name, STR("~")) &&
            !name_covered(lint, ssl, name))
            lint_report(lint, files[0].mark,
                        STR("use a certificate for this name, or move the name to another server"),
                        "no certificate of this server is for \"" STR_FMT "\"", STR_ARG(name));
    }
}

static void self_signed(struct lint *lint, const struct lint_place *place)
{
    const struct core_ssl *ssl = ssl_of(place);
    const struct core_file *files = ssl->certificates.items;

    for (size_t i = 0;
         ssl->certificates.count && config_listens(lint, place->server, true) && i < place->server->names.count;
         i++) {
        if (str_equal(files[0].path, STR("self-signed")) && name_public(place->server->names.items[i]))
            lint_report(lint, files[0].mark, STR("use a certificate that browsers trust"),
                        "browsers show a warning for \"" STR_FMT "\": its certificate is self-signed, and generated "
                                                                 "at each start",
                        STR_ARG(place->server->names.items[i]));
    }
}

static void key_readable(struct lint *lint, const struct lint_place *place)
{
    const struct core_ssl *ssl = ssl_of(place);
    const struct core_file *files = ssl->keys.items;

    for (size_t i = 0; i < ssl->keys.count; i++) {
        struct str path = arena_copy(lint->arena, files[i].path);
        struct stat status;

        if (path.data && stat(path.data, &status) == 0 && status.st_mode & S_IROTH)
            lint_report(lint, files[i].mark, STR("chmod 600"),
                        "all users of this machine can read the key \"" STR_FMT "\"", STR_ARG(path));
    }
}

const struct lint_rule lint_rules_tls[] = {
    {"weak-cipher", LINT_SERVER, weak_cipher,
     "A suite without authentication, forward secrecy or AEAD may be chosen."},
    {"old-protocol", LINT_SERVER, old_protocol, "TLS 1.3 is turned off."},
    {"expired-certificate", LINT_SERVER, certificate_expired,
     "A certificate has expired, or is not valid yet."},
    {"certificate-name", LINT_SERVER, certificate_name, "No certificate is for a name of the server."},
    {"self-signed", LINT_SERVER, self_signed, "A public name has a certificate that no browser trusts."},
    {"readable-key", LINT_SERVER, key_readable, "A private key is readable by all users."},
    {0},
};
