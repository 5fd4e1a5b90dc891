/*
 * A certificate chain that is longer than the send buffer (rule 3), and an owner that overwrites its memory as soon as
 * it has passed it to the wire (rule 11).
 */
#include "kit.h"
#include "scripted.h"

#include "build_options.h"
#include "pem_files.h"
#include "tls/tls_session_private.h"

#include "../unit/runner.h"

#include <openssl/x509v3.h>
#include <stdlib.h>
#include <unistd.h>

static struct kit kit;

enum { CHAIN = 12, COMMENT = 1800 };

/* A certificate of 2 KiB. */
static struct pem_pair make_large_certificate(const char *name)
{
    struct pem_pair made = pem_make("EC", name, -1, 9, NULL);
    char comment[COMMENT + 1];
    X509_EXTENSION *extension;

    memset(comment, 'x', COMMENT);
    comment[COMMENT] = '\0';
    extension = X509V3_EXT_conf_nid(NULL, NULL, NID_netscape_comment, comment);
    ck_assert_ptr_nonnull(extension);
    ck_assert_int_eq(X509_add_ext(made.certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
    ck_assert_int_gt(X509_sign(made.certificate, made.key, EVP_sha256()), 0);
    return made;
}

START_TEST(rule_03_long_chain_through_a_small_buffer)
{
    const struct transport *transport = &transports[_i % 2 ? 4 : 1]; /* TLS 1.2 or 1.3 */
    struct pem_pair leaf = make_large_certificate("localhost"), link = make_large_certificate("a link");
    X509 *chain[CHAIN] = {leaf.certificate};
    struct tls_certificate files;
    int fd = kit_file(1000000);

    for (int i = 1; i < CHAIN; i++)
        chain[i] = link.certificate;
    pem_directory_make();
    pem_write_certificates("long.pem", chain, CHAIN);
    pem_write_key("long.key", leaf.key, NULL, false);
    files = (struct tls_certificate){pem_path("long.pem"), pem_path("long.key")};
    memset(&kernel, 0, sizeof kernel);
    kit_prepare(&kit, _i / 2, transport);
    kit.shared.ktls_calls = &scripted_calls;
    for (int cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
        kit.support.reason[0][cipher] = kit.support.reason[1][cipher] = KTLS_OK;
    kit.tls.certificates = &files;
    kit_open(&kit, 4096);
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit); /* for the tickets */
    ck_assert_uint_gt(kit.tapped_length, 20 * 1024);
    kit_plan_file(&kit, fd, 0, 1000000);
    kit_client_send(&kit, "GET\n");
    kit.raw = true;
    kit_run_until_received(&kit, 1000000);
    ck_assert_mem_eq(kit.got, kit_pattern(), 1000000);
    ck_assert_uint_eq(kit.counters.promotions, 1);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
    pem_directory_remove();
    pem_free(&leaf);
    pem_free(&link);
    close(fd);
}
END_TEST

/*
 * If SSL_write on a kTLS socket is repeated from another buffer, OpenSSL before 3.5.7 sends the bytes of the old one.
 * The wire never repeats a write: it copies or seals all bytes at once.
 */
START_TEST(rule_11_moving_write_buffers)
{
    enum { PIECE = 30000, PIECES = 20 };
    bool no_offer = _i % (transport_count + 1) == transport_count;
    char *moving = malloc(PIECE);
    size_t given = 0;

    kit_prepare(&kit, _i / (transport_count + 1), &transports[no_offer ? 1 : _i % (transport_count + 1)]);
    kit_open(&kit, 4096);
    if (no_offer)
        SSL_clear_options(kit.wire.tls->ssl, SSL_OP_ENABLE_KTLS);
    if (kit.wire.tls)
        ck_assert_int_eq(SSL_get_wfd(kit.wire.tls->ssl), -1); /* OpenSSL has no socket */
    kit_until_open(&kit);
    kit.read_max = 3000;
    while (kit.got_length < (size_t)PIECE * PIECES) {
        size_t room = wire_room(&kit.wire), left = (size_t)PIECE * PIECES - given;
        size_t length = room < left ? room : left;
        struct chunk chunk = {.kind = CHUNK_BYTES};

        if (length > PIECE)
            length = PIECE;
        chunk.bytes = str_of(moving, length);
        memcpy(moving, kit_pattern() + given, length);
        if (length > 0)
            ck_assert_int_eq(wire_send(&kit.wire, &chunk), 0);
        memset(moving, '!', length);
        wire_flush(&kit.wire);
        memset(moving, '?', length);
        given += length;
        kit_turn(&kit);
    }
    ck_assert_mem_eq(kit.got, kit_pattern(), (size_t)PIECE * PIECES);
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    kit_close(&kit);
    free(moving);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int backends = backend_count();

    if (strcmp(BUILD_KTLS, "built in") == 0)
        tcase_add_loop_test(tcase, rule_03_long_chain_through_a_small_buffer, 0, 2 * backends);
    tcase_add_loop_test(tcase, rule_11_moving_write_buffers, 0, (transport_count + 1) * backends);
}

int main(void)
{
    return run_suite("buffers", add_tests);
}
