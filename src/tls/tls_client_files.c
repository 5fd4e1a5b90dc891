/*
 * CRLs, encrypted keys and SSL_CONF commands for client contexts.
 */
#include "tls/tls_client_files.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>

#define PASSWORD_LINE 1024

bool tls_client_copy_string(struct str text, char *out, size_t size)
{
    if (text.length >= size)
        return false;
    if (text.length)
        memcpy(out, text.data, text.length); /* an empty str may have no pointer */
    out[text.length] = '\0';
    return true;
}

bool tls_client_load_crls(SSL_CTX *openssl, struct str path)
{
    X509_STORE *store = SSL_CTX_get_cert_store(openssl);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    char name[4096];

    return lookup && tls_client_copy_string(path, name, sizeof(name)) &&
           X509_load_crl_file(lookup, name, X509_FILETYPE_PEM) > 0 &&
           X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) == 1;
}

/* A pem_password_cb that supplies the line `owner`; NULL: none, without a prompt on the terminal. */
static int supply_password(char *into, int size, int writing, void *owner)
{
    const char *line = owner;
    size_t length = line ? strcspn(line, "\r\n") : 0;

    if (!line || length > (size_t)size)
        return -1;
    memcpy(into, line, length);
    return (int)length;
}

static bool try_key(SSL_CTX *openssl, const char *path, char *line)
{
    bool good;

    SSL_CTX_set_default_passwd_cb_userdata(openssl, line);
    good = SSL_CTX_use_PrivateKey_file(openssl, path, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(openssl, NULL);
    return good;
}

/* Tries the lines in order; the error of the last one stays in the queue. */
static bool try_lines(SSL_CTX *openssl, const char *path, FILE *lines)
{
    char line[PASSWORD_LINE] = "";
    bool good = false;

    while (!good && fgets(line, sizeof(line), lines)) {
        ERR_clear_error();
        good = try_key(openssl, path, line);
    }
    OPENSSL_cleanse(line, sizeof(line));
    return good;
}

bool tls_client_load_key(SSL_CTX *openssl, struct str path, struct str passwords)
{
    char name[4096], lines_name[4096];
    FILE *lines;
    bool good;

    SSL_CTX_set_default_passwd_cb(openssl, supply_password);
    if (!tls_client_copy_string(path, name, sizeof(name)) ||
        !tls_client_copy_string(passwords, lines_name, sizeof(lines_name)))
        return false;
    if (try_key(openssl, name, NULL))
        return true;
    if (str_empty(passwords))
        return false;
    lines = fopen(lines_name, "re");
    if (!lines) {
        ERR_clear_error();
        ERR_raise(ERR_LIB_SYS, errno);
        return false;
    }
    good = try_lines(openssl, name, lines);
    fclose(lines);
    return good;
}

static bool apply_command(SSL_CONF_CTX *conf, const struct tls_command *one)
{
    char name[256], value[4096];

    return tls_client_copy_string(one->name, name, sizeof(name)) &&
           tls_client_copy_string(one->value, value, sizeof(value)) && SSL_CONF_cmd(conf, name, value) > 0;
}

bool tls_client_apply_commands(SSL_CTX *openssl, const struct tls_command *commands, size_t count)
{
    SSL_CONF_CTX *conf = SSL_CONF_CTX_new();
    bool good = conf;

    if (good) {
        SSL_CONF_CTX_set_flags(conf, SSL_CONF_FLAG_FILE | SSL_CONF_FLAG_CLIENT | SSL_CONF_FLAG_CERTIFICATE |
                                         SSL_CONF_FLAG_SHOW_ERRORS);
        SSL_CONF_CTX_set_ssl_ctx(conf, openssl);
    }
    for (size_t i = 0; i < count && good; i++)
        good = apply_command(conf, &commands[i]);
    good = good && SSL_CONF_CTX_finish(conf) == 1;
    SSL_CONF_CTX_free(conf);
    if (good && SSL_CTX_get_min_proto_version(openssl) < TLS1_2_VERSION) {
        ERR_raise(ERR_LIB_SSL, SSL_R_UNSUPPORTED_PROTOCOL);
        return false;
    }
    return good;
}
