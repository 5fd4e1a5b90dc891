/*
 * Sessions with a collector in another process, which uses OpenSSL alone: certificates that are and are not accepted,
 * and handshakes that do not end.
 */
#include "otlp/otlp_tls.h"

#include "../runner.h"
#include "../tls/pem_files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BODY_BYTES = 100000 };       /* several records */

enum behaviour { ECHOES, ENDS_WITHOUT_CLOSE_NOTIFY, CLOSES_AT_HELLO, NEVER_ANSWERS, ANSWERS_PLAIN };

struct collector {
    int listener;
    pid_t pid;
    struct otlp otlp;
    struct otlp_events events;
    struct otlp_socket socket;
    struct otlp_tls tls;
    char url[64];
};

/* Reads the body, and sends its last bytes and the name of SNI. */
static int serve_tls(int fd, enum behaviour behaviour)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    char bytes[BODY_BYTES], answer[300];
    size_t length = 0, part = 0;
    SSL *ssl;

    SSL_CTX_use_certificate_file(context, pem_path("own.pem").data, SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context, pem_path("own.key").data, SSL_FILETYPE_PEM);
    ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) != 1)
        return 1;
    for (; length < sizeof(bytes); length += part) {
        if (SSL_read_ex(ssl, bytes + length, sizeof(bytes) - length, &part) != 1)
            return 2;
    }
    part = (size_t)snprintf(answer, sizeof(answer), "%.4s %s", bytes + sizeof(bytes) - 4,
                            SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name));
    if (SSL_write_ex(ssl, answer, part, &part) != 1)
        return 3;
    if (behaviour == ECHOES)
        SSL_shutdown(ssl);
    return 0;
}

static _Noreturn void serve(struct collector *collector, enum behaviour behaviour)
{
    int fd = accept(collector->listener, NULL, NULL);
    char bytes[4096];
    int status = 0;

    if (behaviour == CLOSES_AT_HELLO || behaviour == ANSWERS_PLAIN)
        status = read(fd, bytes, sizeof(bytes)) > 0 ? 0 : 4;
    if (behaviour == ANSWERS_PLAIN)
        status = write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28) == 28 ? 0 : 5;
    if (behaviour == NEVER_ANSWERS)
        while (read(fd, bytes, sizeof(bytes)) > 0) /* until the client closes */
            continue;
    if (behaviour <= ENDS_WITHOUT_CLOSE_NOTIFY)
        status = serve_tls(fd, behaviour);
    close(fd);
    _exit(status);
}

/* The certificate is its own authority. */
static void make_certificate(const char *name, const char *certificate, const char *key)
{
    struct pem_pair pair = pem_make("EC", name, -1, 1, NULL);

    pem_write_certificates(certificate, &pair.certificate, 1);
    pem_write_key(key, pair.key, NULL, false);
    pem_free(&pair);
}

/* Connects to a collector at `host` whose certificate has the name localhost, and trusts a file. Returns the result. */
static int connect_to(struct collector *collector, enum behaviour behaviour, const char *host, const char *trusted)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    uint64_t limit_ms = behaviour == NEVER_ANSWERS ? 100 : 20000;
    char error[256];

    pem_directory_make();
    make_certificate("localhost", "own.pem", "own.key");
    make_certificate("localhost", "other.pem", "other.key");
    *collector = (struct collector){.events = {.channel_fd = -1}};
    collector->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(collector->listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(collector->listener, 8), 0);
    ck_assert_int_eq(getsockname(collector->listener, (struct sockaddr *)&address, &size), 0);
    collector->pid = fork();
    if (collector->pid == 0)
        serve(collector, behaviour);
    close(collector->listener);
    snprintf(collector->url, sizeof(collector->url), "https://%s:%d", host, ntohs(address.sin_port));
    ck_assert_int_eq(otlp_endpoint_parse(str_from(collector->url), &collector->otlp.endpoint), 0);
    ck_assert_int_eq(otlp_tls_context_open(&collector->otlp, pem_path(trusted), error, sizeof(error)), 0);
    ck_assert_int_eq(otlp_socket_connect(&collector->events, &collector->otlp.endpoint, otlp_now_ms() + limit_ms,
                                         &collector->socket), 0);
    return otlp_tls_connect(&collector->tls, &collector->socket, collector->otlp.tls, collector->otlp.endpoint.host);
}

/* Returns the exit status of the collector. */
static int end(struct collector *collector)
{
    int status;

    otlp_tls_finish(&collector->tls);
    otlp_tls_finish(&collector->tls);
    otlp_socket_close(&collector->socket);
    otlp_tls_context_close(&collector->otlp);
    otlp_tls_context_close(&collector->otlp);
    ck_assert_int_eq(waitpid(collector->pid, &status, 0), collector->pid);
    pem_directory_remove();
    return status;
}

static void exchange_bytes(enum behaviour behaviour)
{
    static char body[BODY_BYTES];
    struct collector collector;
    char answer[64];
    size_t length = 0;
    ssize_t part;

    ck_assert_int_eq(connect_to(&collector, behaviour, "localhost", "own.pem"), 0);
    memcpy(body + sizeof(body) - 4, "last", 4);
    ck_assert_int_eq(otlp_tls_write(&collector.tls, str_of(body, sizeof(body))), 0);
    while ((part = otlp_tls_read(&collector.tls, answer + length, sizeof(answer) - length)) > 0)
        length += (size_t)part;
    ck_assert_int_eq(part, 0);
    ck_assert(str_equal(str_of(answer, length), STR("last localhost")));
    ck_assert_int_eq(end(&collector), 0);
}

START_TEST(bytes_pass_both_ways)
{
    exchange_bytes(ECHOES);
    exchange_bytes(ENDS_WITHOUT_CLOSE_NOTIFY);
}
END_TEST

static const struct {
    const char *host, *trusted;
    enum behaviour behaviour;
    int error;
    const char *fault;
    bool collector_fails;
} faults[] = {
    {"127.0.0.1", "own.pem", ECHOES, -EPROTO, "IP address mismatch", true},
    {"localhost", "other.pem", ECHOES, -EPROTO, "self-signed certificate", true},
    {"localhost", "own.pem", CLOSES_AT_HELLO, -EPROTO, "the collector closed the connection during the TLS handshake",
     false},
    {"localhost", "own.pem", NEVER_ANSWERS, -ETIMEDOUT, "the TLS handshake was not completed in time", false},
    {"localhost", "own.pem", ANSWERS_PLAIN, -EPROTO, "the peer does not use TLS", false},
};

START_TEST(failed_handshakes_have_their_reason)
{
    struct collector collector;

    ck_assert_int_eq(connect_to(&collector, faults[_i].behaviour, faults[_i].host, faults[_i].trusted),
                     faults[_i].error);
    ck_assert_ptr_nonnull(collector.tls.fault);
    ck_assert_msg(strstr(collector.tls.fault, faults[_i].fault) != NULL, "%s", collector.tls.fault);
    ck_assert_int_eq(end(&collector) != 0, faults[_i].collector_fails);
}
END_TEST

START_TEST(unreadable_authorities_are_rejected)
{
    struct otlp otlp = {0};
    char error[256] = "";

    pem_directory_make();
    pem_write_text("text.pem", STR("no certificate\n"));
    ck_assert_int_eq(otlp_tls_context_open(&otlp, pem_path("absent.pem"), error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "No such file or directory");
    ck_assert_int_eq(otlp_tls_context_open(&otlp, pem_path("text.pem"), error, sizeof(error)), -EINVAL);
    ck_assert_ptr_null(otlp.tls);
    ck_assert_int_eq(otlp_tls_context_open(&otlp, STR(""), error, sizeof(error)), 0);
    ck_assert_ptr_nonnull(otlp.tls);
    otlp_tls_context_close(&otlp);
    pem_directory_remove();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, bytes_pass_both_ways);
    tcase_add_loop_test(tcase, failed_handshakes_have_their_reason, 0, sizeof(faults) / sizeof(faults[0]));
    tcase_add_test(tcase, unreadable_authorities_are_rejected);
}

int main(void)
{
    return run_suite("otlp_tls", add_tests);
}
