/* `secure_link`: a request is allowed with a valid signature until its time of expiry, and not otherwise. */
#include "loopback.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

static struct loopback server;

#define SERVER                                                                                               \
    "http:\n"                                                                                                \
    "  log_format: {one: '$uri $status'}\n"                                                                 \
    "  access_log: {path: @/log, format: one}\n"                                                            \
    "  server:\n"                                                                                            \
    "    listen: 8080\n"                                                                                     \
    "    secure_link: $arg_sum,$arg_expires\n"                                                               \
    "    secure_link_sha256: $secure_link_expires$uri secret\n"                                              \
    "    location:\n"                                                                                        \
    "      /values: {return: '200 \"[$secure_link $secure_link_expires]\"'}\n"                                 \
    "      /values/old: {secure_link_md5: $secure_link_expires$uri secret, return: '200 [$secure_link]'}\n"    \
    "      /when: {return: 200 in, when: {$secure_link != 1: {return: 403}}}\n"                              \
    "      /file: {secure_link_required: on, return: 200 in}\n"                                              \
    "      /any: {secure_link_required: on, satisfy: any, allow: 192.0.2.1, deny: all, return: 200 in}\n"    \
    "      /page: {secure_link_required: on, error_page: '418 =200 /shown', return: 418}\n"                    \
    "      /shown: {secure_link_required: on, return: 200 shown}\n"                                           \
    "      /ever: {secure_link: $arg_sum, secure_link_sha256: $uri secret, return: '200 [$secure_link]'}\n"  \
    "      /self: {secure_link_md5: $secure_link, return: '200 [$secure_link]'}\n"                           \
    "      /none: {secure_link: '', return: '200 [$secure_link]'}\n"

/* The digest in base64, as `openssl ... -binary | base64` prints it; or in base64url. */
static const char *sum_of(const char *text, const EVP_MD *kind, bool url)
{
    static char encoded[128];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;

    ck_assert_int_eq(EVP_Digest(text, strlen(text), digest, &size, kind, NULL), 1);
    EVP_EncodeBlock((unsigned char *)encoded, digest, (int)size);
    for (char *at = encoded; url && *at; at++) {
        if (*at == '+' || *at == '/')
            *at = *at == '+' ? '-' : '_';
        if (*at == '=')
            *at = '\0';
    }
    return encoded;
}

/* The time of expiry comes first in the signed text, as SERVER configures it. */
static int request_status(const char *path, const char *expires, const char *signed_as, const EVP_MD *kind, bool url)
{
    char text[256], head[512];

    snprintf(text, sizeof(text), "%s%s secret", expires, signed_as);
    snprintf(head, sizeof(head), "GET %s?sum=%s&expires=%s HTTP/1.1", path, sum_of(text, kind, url), expires);
    loopback_request(&server, head);
    return server.status;
}

#define LATER "4102444800" /* in 2100 */
#define GONE  "1000000000" /* in 2001 */

START_TEST(variables_follow_signature_and_expiry)
{
    loopback_open(&server, SERVER);
    request_status("/values", LATER, "/values", EVP_sha256(), true);
    ck_assert_text(server.body, "[1 " LATER "]");
    request_status("/values", LATER, "/values", EVP_sha256(), false);
    ck_assert_text(server.body, "[1 " LATER "]");
    request_status("/values", GONE, "/values", EVP_sha256(), true);
    ck_assert_text(server.body, "[0 " GONE "]");
    request_status("/values", LATER, "/valueS", EVP_sha256(), true);
    ck_assert_text(server.body, "[ " LATER "]");
    request_status("/values", LATER, "/values", EVP_md5(), true);
    ck_assert_text(server.body, "[ " LATER "]");
    request_status("/values", "soon", "/values", EVP_sha256(), true);
    ck_assert_text(server.body, "[ soon]");
    request_status("/values/old", LATER, "/values/old", EVP_md5(), true);
    ck_assert_text(server.body, "[1]");
    request_status("/values/old", LATER, "/values/old", EVP_sha256(), true);
    ck_assert_text(server.body, "[]");
    request_status("/ever", "", "/ever", EVP_sha256(), true);
    ck_assert_text(server.body, "[1]");
    request_status("/self", LATER, "/self", EVP_md5(), true);
    ck_assert_text(server.body, "[]");
    request_status("/none", LATER, "/none", EVP_sha256(), true);
    ck_assert_text(server.body, "[]");
    loopback_close(&server);
}
END_TEST

START_TEST(signature_and_expiry_decide)
{
    static const char *const bad[] = {"/file", "/file?sum=", "/file?sum=,", "/file?expires=" LATER,
                                      "/file?sum=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA&expires=" LATER,
                                      "/file?sum=%00&expires=" LATER};

    loopback_open(&server, SERVER);
    ck_assert_int_eq(request_status("/file", LATER, "/file", EVP_sha256(), true), 200);
    ck_assert_int_eq(request_status("/file", GONE, "/file", EVP_sha256(), true), 410);
    ck_assert_int_eq(request_status("/file", LATER, "/other", EVP_sha256(), true), 403);
    ck_assert(loopback_logged(&server, "secure_link: the URL has expired"));
    ck_assert(loopback_logged(&server, "secure_link: the signature is missing or invalid"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char head[256];

        snprintf(head, sizeof(head), "GET %s HTTP/1.1", bad[i]);
        loopback_request(&server, head);
        ck_assert_msg(server.status == 403, "%s: %d", bad[i], server.status);
    }
    ck_assert_int_eq(request_status("/when", LATER, "/when", EVP_sha256(), true), 200);
    ck_assert_int_eq(request_status("/when", LATER, "/when/", EVP_sha256(), true), 403);
    ck_assert_int_eq(request_status("/any", LATER, "/any", EVP_sha256(), true), 200);
    ck_assert_int_eq(request_status("/any", GONE, "/any", EVP_sha256(), true), 403);
    loopback_close(&server);
}
END_TEST

/* The signature applies to the requested URI, not to the target of an internal redirect. */
START_TEST(redirect_keeps_the_signed_uri)
{
    loopback_open(&server, SERVER);
    ck_assert_int_eq(request_status("/page", LATER, "/page", EVP_sha256(), true), 200);
    ck_assert_text(server.body, "shown");
    ck_assert_int_eq(request_status("/page", LATER, "/shown", EVP_sha256(), true), 403);
    ck_assert_int_eq(request_status("/shown", LATER, "/page", EVP_sha256(), true), 403);
    ck_assert_int_eq(request_status("/shown", LATER, "/shown", EVP_sha256(), true), 200);
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    loopback_configuration_rejected("secure_link_required: on", "secure_link_required needs secure_link");
    loopback_configuration_rejected("secure_link_sha256: $nothing", "nothing");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        variables_follow_signature_and_expiry, signature_and_expiry_decide, redirect_keeps_the_signed_uri,
        invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("secure_link", tests);
}
