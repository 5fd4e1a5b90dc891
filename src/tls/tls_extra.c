/*
 * Rarely used settings: Diffie-Hellman parameters for TLS 1.2, and SSL_CONF commands.
 */
#include "tls/tls_server.h"

#include "base/limits.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <strings.h>

/* NULL after a reported fault. OpenSSL rejects weak parameters when they are set. */
static EVP_PKEY *read_parameters(const struct tls_file *file, const struct tls_reporter *reporter)
{
    BIO *reader = BIO_new_mem_buf(file->text, (int)file->length);
    EVP_PKEY *parameters = reader ? PEM_read_bio_Parameters(reader, NULL) : NULL;
    bool good = parameters && EVP_PKEY_is_a(parameters, "DH");

    BIO_free(reader);
    ERR_clear_error();
    if (good && EVP_PKEY_get_bits(parameters) >= LIMIT_DH_BITS)
        return parameters;
    if (good)
        tls_fail(reporter, "the parameters in \"%s\" have %d bits\nat least %d are required: ssl_dhparam: auto",
                 file->name, EVP_PKEY_get_bits(parameters), LIMIT_DH_BITS);
    else if (!tls_pem_contains(file, "DH PARAMETERS-----"))
        tls_pem_report_missing(file, "parameters of Diffie-Hellman", "dhparam", "write ssl_dhparam: auto", reporter);
    else
        tls_fail(reporter, "the parameters in \"%s\" cannot be read\nwrite ssl_dhparam: auto, or generate parameters "
                          "with: openssl genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048",
                 file->name);
    EVP_PKEY_free(parameters);
    return NULL;
}

static bool load_parameters(struct tls_server *server, struct tls_file *file, const struct tls_reporter *reporter)
{
    EVP_PKEY *parameters = NULL;

    if (tls_file_open(file, server, server->settings->dh_parameters, reporter))
        parameters = read_parameters(file, reporter);
    tls_file_finish(file);
    if (!parameters)
        return false;
    if (SSL_CTX_set0_tmp_dh_pkey(server->openssl, parameters) == 1)
        return true;
    EVP_PKEY_free(parameters);
    return tls_fail(reporter, "the parameters in \"%s\" cannot be used: %s", file->name, tls_openssl_reason());
}

bool tls_dh_set(struct tls_server *server, const struct tls_reporter *reporter)
{
    struct tls_reporter at = tls_reporter_at(reporter, "ssl_dhparam", 0);
    struct str named = server->settings->dh_parameters;
    struct tls_file *file;
    bool good;

    if (str_empty(named))
        return true;
    if (str_equal(named, STR("auto"))) {
        SSL_CTX_set_dh_auto(server->openssl, 1);
        return true;
    }
    file = calloc(1, sizeof(*file));
    good = file ? load_parameters(server, file, &at) : tls_fail(&at, "out of memory");
    free(file);
    return good;
}

/* Commands that would conflict with settings of sluice. */
static const struct {
    const char *name, *hint;
} rejected[] = {
    {"VerifyMode", "use ssl_verify_client"},
    {"RecordPadding", "delete it: records are encrypted by sluice or by the kernel, without padding"},
    {"Certificate", "use ssl_certificate for certificate files"},
    {"PrivateKey", "use ssl_certificate_key for key files"},
    {"DHParameters", "use ssl_dhparam"},
    {"VerifyCAFile", "use ssl_client_certificate or ssl_trusted_certificate"},
    {"VerifyCAPath", "use ssl_client_certificate or ssl_trusted_certificate"},
    {"RequestCAFile", "use ssl_client_certificate"},
    {"ClientCAFile", "use ssl_client_certificate"},
};

static bool is_refused(const char *name, const struct tls_reporter *reporter)
{
    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        if (strcasecmp(name, rejected[i].name) == 0) {
            tls_fail(reporter, "ssl_conf_command: \"%s\" is not allowed here\n%s", name, rejected[i].hint);
            return true;
        }
    }
    return false;
}

/* SSL_CONF_cmd(3): 2: both words were used; -2: unknown command. */
static bool run_command(struct tls_server *server, SSL_CONF_CTX *conf, const char *name, const char *value,
                        const struct tls_reporter *reporter)
{
    int result;

    if (is_refused(name, reporter))
        return false;
    result = SSL_CONF_cmd(conf, name, value);
    if (result == -2) {
        ERR_clear_error();
        return tls_fail(reporter, "ssl_conf_command: OpenSSL has no command \"%s\" for servers\n"
                                 "man SSL_CONF_cmd lists them, under \"configuration file commands\"",
                        name);
    }
    if (result != 2) {
        ERR_clear_error(); /* "bad value", worded differently by each version */
        return tls_fail(reporter, "ssl_conf_command: OpenSSL rejects \"%s\" for %s\n"
                                 "see man SSL_CONF_cmd",
                        value, name);
    }
    if (strcasecmp(name, "Groups") != 0 && strcasecmp(name, "Curves") != 0)
        return true;
    /* switch_server applies these groups to sessions that SNI switches to this server. */
    free(server->groups);
    server->groups = strdup(value);
    return server->groups || tls_fail(reporter, "out of memory");
}

static bool run_one(struct tls_server *server, SSL_CONF_CTX *conf, size_t index,
                    const struct tls_reporter *reporter)
{
    const struct tls_command *command = &server->settings->commands[index];
    struct tls_reporter at = tls_reporter_at(reporter, "ssl_conf_command", index);
    char *name = strndup(command->name.data, command->name.length);
    char *value = strndup(command->value.data, command->value.length);
    bool good = name && value ? run_command(server, conf, name, value, &at) : tls_fail(&at, "out of memory");

    free(name);
    free(value);
    return good;
}

/*
 * The record layer uses OpenSSL's keys: OpenSSL must not renegotiate, and versions before TLS 1.2 are not supported.
 */
static bool keep_required_options(struct tls_server *server, const struct tls_reporter *reporter)
{
    struct tls_reporter at = tls_reporter_at(reporter, "ssl_conf_command", 0);

    SSL_CTX_clear_options(server->openssl, SSL_OP_ALLOW_CLIENT_RENEGOTIATION);
    SSL_CTX_set_options(server->openssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_ENABLE_KTLS);
    return SSL_CTX_get_min_proto_version(server->openssl) >= TLS1_2_VERSION ||
           tls_fail(&at, "ssl_conf_command: versions before TLS 1.2 are not supported (RFC 8996)\n"
                         "write ssl_protocols: TLSv1.2 TLSv1.3");
}

bool tls_commands_set(struct tls_server *server, const struct tls_reporter *reporter)
{
    SSL_CONF_CTX *conf;
    bool good = true;

    if (server->settings->command_count == 0)
        return true;
    conf = SSL_CONF_CTX_new();
    if (!conf)
        return tls_fail(reporter, "out of memory");
    SSL_CONF_CTX_set_flags(conf, SSL_CONF_FLAG_FILE | SSL_CONF_FLAG_SERVER | SSL_CONF_FLAG_SHOW_ERRORS);
    SSL_CONF_CTX_set_ssl_ctx(conf, server->openssl);
    for (size_t i = 0; i < server->settings->command_count; i++)
        good &= run_one(server, conf, i, reporter);
    if (good && SSL_CONF_CTX_finish(conf) != 1)
        good = tls_fail(reporter, "ssl_conf_command: %s", tls_openssl_reason());
    SSL_CONF_CTX_free(conf);
    return good && keep_required_options(server, reporter);
}
