#include "tls/tls_certificate_facts.h"

#include "pem_files.h"
#include "tls_pair.h"

#include "../runner.h"

#include <openssl/ssl.h>
#include <time.h>

static void discard(void *owner, enum log_level level, struct str line)
{
}

static struct log quiet = {.level = LOG_EMERG, .sink = discard};

static void write_pair(const char *name, const char *kind, const char *common_name, int days)
{
    struct pem_pair pair = pem_make(kind, common_name, -1, days, NULL);
    char file[64];

    snprintf(file, sizeof(file), "%s.pem", name);
    pem_write_certificates(file, &pair.certificate, 1);
    snprintf(file, sizeof(file), "%s.key", name);
    pem_write_key(file, pair.key, NULL, false);
    pem_free(&pair);
}

START_TEST(each_certificate_is_described)
{
    struct tls_certificate both[2], one;
    struct tls_settings settings[2] = {pair_settings(), pair_settings()};
    struct tls_certificate_facts facts;
    struct tls_context *context;
    char error[512] = "";
    int64_t now_s = time(NULL);
    bool seen[2] = {false, false};

    pem_directory_make();
    write_pair("ec", "EC", "ec.example", 9);
    write_pair("rsa", "RSA", "rsa.example", 20);
    write_pair("old", "EC", "old.example", 0);
    both[0] = (struct tls_certificate){pem_path("ec.pem"), pem_path("ec.key")};
    both[1] = (struct tls_certificate){pem_path("rsa.pem"), pem_path("rsa.key")};
    one = (struct tls_certificate){pem_path("old.pem"), pem_path("old.key")};
    settings[0].certificates = both;
    settings[0].certificate_count = 2;
    settings[1].certificates = &one;
    context = tls_context_create(settings, 2, &quiet, error, sizeof(error));
    ck_assert_msg(context, "%s", error);
    for (size_t i = 0; i < 2; i++) {
        ck_assert(tls_certificate_facts(context, 0, i, &facts));
        bool rsa = strcmp(facts.key, "RSA") == 0;

        ck_assert_str_eq(facts.key, rsa ? "RSA" : "EC");
        ck_assert_str_eq(facts.subject, rsa ? "CN=rsa.example" : "CN=ec.example");
        ck_assert_str_eq(facts.issuer, facts.subject);
        ck_assert_int_le(llabs(facts.until_s - now_s - 86400 * (rsa ? 20 : 9)), 60);
        ck_assert(!seen[rsa]);
        seen[rsa] = true;
    }
    ck_assert(!tls_certificate_facts(context, 0, 2, &facts));
    ck_assert(tls_certificate_facts(context, 1, 0, &facts));
    ck_assert_str_eq(facts.subject, "CN=old.example");
    ck_assert(!tls_certificate_facts(context, 1, 1, &facts));
    ck_assert(!tls_certificate_facts(context, 2, 0, &facts));
    tls_context_destroy(context);
    pem_directory_remove();
}
END_TEST

/* The handshake uses the certificate that it used before. */
START_TEST(description_changes_nothing)
{
    struct tls_settings settings = pair_settings();
    struct tls_certificate_facts facts;
    struct tls_pair pair;

    pair_open(&pair, &settings, 1);
    ck_assert(tls_certificate_facts(pair.context, 0, 0, &facts));
    ck_assert(!tls_certificate_facts(pair.context, 0, 1, &facts));
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_close(&pair);
}
END_TEST

START_TEST(a_rejecting_server_has_none)
{
    struct tls_settings settings = pair_settings();
    struct tls_certificate_facts facts;
    struct tls_context *context;
    char error[512] = "";

    settings.reject = true;
    settings.certificate_count = 0;
    context = tls_context_create(&settings, 1, &quiet, error, sizeof(error));
    ck_assert_msg(context, "%s", error);
    ck_assert(!tls_certificate_facts(context, 0, 0, &facts));
    tls_context_destroy(context);
}
END_TEST

int main(void)
{
    return run_tests("tls_certificate_facts", (const TTest *const[]){
            each_certificate_is_described, description_changes_nothing, a_rejecting_server_has_none, NULL});
}
