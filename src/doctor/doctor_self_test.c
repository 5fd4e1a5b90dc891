/*
 * The self-test: the server's loop, wire and kernel TLS code send a file, which is generated in memory, over loopback
 * to an OpenSSL client in another process.
 */
#include "doctor/doctor.h"

#include "base/limits.h"
#include "base/memory_file.h"
#include "doctor/doctor_client.h"
#include "io/listener.h"
#include "tls/tls_context.h"
#include "wire/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF_TEST_BYTES (1024ull * 1024)
#define SELF_TEST_MS    15000

const struct suite doctor_suites[] = {
    {"TLS 1.3 AES-128-GCM", 1, RECORD_AES_128_GCM, "TLS_AES_128_GCM_SHA256"},
    {"TLS 1.3 AES-256-GCM", 1, RECORD_AES_256_GCM, "TLS_AES_256_GCM_SHA384"},
    {"TLS 1.3 ChaCha20-Poly1305", 1, RECORD_CHACHA20_POLY1305, "TLS_CHACHA20_POLY1305_SHA256"},
    {"TLS 1.2 AES-128-GCM", 0, RECORD_AES_128_GCM, "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS 1.2 AES-256-GCM", 0, RECORD_AES_256_GCM, "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS 1.2 ChaCha20-Poly1305", 0, RECORD_CHACHA20_POLY1305, "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {0},
};

struct self_test_run {
    struct self_test *self_test;
    struct loop loop;
    struct log log;
    struct wire wire;
    struct wire_shared shared;
    struct wire_counters counters;
    struct op deadline;
    int file;
    bool queued; /* the file was passed to the wire */
    bool closing;
    bool closed;
};

static void set_fault(struct self_test *self_test, const char *what, int error)
{
    if (self_test->fault[0])
        return;
    if (error)
        snprintf(self_test->fault, sizeof(self_test->fault), "%s: %s", what, strerror(error < 0 ? -error : error));
    else
        snprintf(self_test->fault, sizeof(self_test->fault), "%s", what);
}

static void record_log_line(void *owner, enum log_level level, struct str line)
{
    struct self_test *self_test = owner;
    ssize_t at = str_search(line, STR("#0: "));

    if (level <= LOG_ERROR && at >= 0 && !self_test->fault[0])
        snprintf(self_test->fault, sizeof(self_test->fault), STR_FMT,
                 STR_ARG(str_slice(line, (size_t)at + 4, line.length - 1)));
}

static int make_file(void)
{
    unsigned char part[16384];
    int fd = memory_file_create("sluice-doctor", MFD_CLOEXEC);

    for (uint64_t at = 0; fd >= 0 && at < SELF_TEST_BYTES; at += sizeof(part)) {
        for (size_t i = 0; i < sizeof(part); i++)
            part[i] = doctor_pattern(at + i);
        if (write(fd, part, sizeof(part)) != (ssize_t)sizeof(part)) {
            close(fd);
            return -EIO;
        }
    }
    return fd < 0 ? -errno : fd;
}

/* Passes the file to the wire when it has room; closes the wire with close_notify after the file was sent. */
static void send_file(struct self_test_run *run)
{
    struct wire *wire = &run->wire;
    struct chunk chunk = {.kind = CHUNK_FILE};

    if (run->closing)
        return;
    if (!run->queued && wire_room(wire) > 0) {
        chunk.file.fd = run->file;
        chunk.file.length = SELF_TEST_BYTES;
        run->queued = true;
        if (wire_send(wire, &chunk) < 0) {
            set_fault(run->self_test, "the file could not be queued", 0);
            wire_close(wire, WIRE_CLOSE_ABORT);
            return;
        }
        wire_flush(wire);
    }
    if (run->queued && wire_room(wire) > 0) {
        struct transfer transfer = wire_transfer_end(wire, NULL);

        run->self_test->path = transfer.path;
        run->self_test->reason = transfer.reason;
        run->self_test->bytes = transfer.total;
        run->closing = true;
        wire_close(wire, WIRE_CLOSE_ORDERLY);
    }
}

static void wire_opened(struct wire *wire)
{
    struct self_test_run *run = container_of(wire, struct self_test_run, wire);
    struct str protocol = tls_session_protocol(wire->tls);
    struct str cipher = tls_session_cipher(wire->tls);

    run->self_test->handshake = true;
    run->self_test->key_offered = wire->sealing == SEALING_USER;
    snprintf(run->self_test->protocol, sizeof(run->self_test->protocol), STR_FMT, STR_ARG(protocol));
    snprintf(run->self_test->cipher, sizeof(run->self_test->cipher), STR_FMT, STR_ARG(cipher));
    wire_receive(wire);
    send_file(run);
}

static size_t wire_received(struct wire *wire, struct str bytes)
{
    return bytes.length;
}

static void wire_writable(struct wire *wire)
{
    send_file(container_of(wire, struct self_test_run, wire));
}

static void wire_closed(struct wire *wire, enum wire_close_reason end)
{
    struct self_test_run *run = container_of(wire, struct self_test_run, wire);

    if (end != WIRE_CLOSE_ORDERLY)
        set_fault(run->self_test, end == WIRE_CLOSE_PROTOCOL ? "TLS failed" : "the connection was closed", 0);
    run->closed = true;
    loop_cancel(&run->loop, &run->deadline);
}

static void deadline_passed(struct op *op, int result)
{
    struct self_test_run *run = container_of(op, struct self_test_run, deadline);

    if (result == -ECANCELED)
        return;
    set_fault(run->self_test, "it took too long", 0);
    wire_close(&run->wire, WIRE_CLOSE_TIMEOUT);
}

static const struct wire_events events = {
    .opened = wire_opened, .received = wire_received, .writable = wire_writable, .closed = wire_closed};
static const struct wire_settings settings = {
    .sendfile = true, .block_size = 65536, .record_size = LIMIT_RECORD_PLAINTEXT, .lingering_ms = 5000};

static void serve_one(struct self_test_run *run, struct tls_context *context, int fd)
{
    int result = loop_open(&run->loop, "auto", &run->log);

    if (result < 0) {
        set_fault(run->self_test, "the event loop could not be created", result);
        close(fd);
        return;
    }
    run->shared.loop = &run->loop;
    run->deadline.done = deadline_passed;
    result = wire_shared_init(&run->shared);
    if (result == 0) {
        result = wire_open(&run->wire, &run->shared, &events, &settings, fd, context);
        if (result == 0) {
            loop_timer(&run->loop, &run->deadline, run->loop.clock.monotonic_ms + SELF_TEST_MS);
            while (result >= 0 && (!run->closed || run->loop.in_flight > 0))
                result = loop_run_iteration(&run->loop, UINT64_MAX);
        }
        wire_shared_finish(&run->shared);
    }
    if (result < 0)
        set_fault(run->self_test, "the loop failed", result);
    else
        loop_close(&run->loop);
}

/* Creates a connected pair over loopback TCP, which kernel TLS requires. Returns 0 or -errno. */
static int connect_pair(int *out_server, int *out_client)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct listen_address address = {.length = sizeof(loopback)};
    int listener;
    int client = -1;
    int server = -1;
    int error = 0;

    memcpy(&address.socket, &loopback, sizeof(loopback));
    listener = listener_open(&address, 1);
    if (listener < 0)
        return listener;
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0 || getsockname(listener, (struct sockaddr *)&address.socket, &address.length) < 0 ||
        connect(client, (const struct sockaddr *)&address.socket, address.length) < 0)
        error = -errno;
    if (error == 0 && poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 2000) != 1)
        error = -ETIMEDOUT;
    if (error == 0) {
        server = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        error = server < 0 ? -errno : 0;
    }
    close(listener);
    if (error < 0 && client >= 0)
        close(client);
    *out_server = server;
    *out_client = client;
    return error;
}

static void check_client(struct self_test *self_test, pid_t child)
{
    int status = 0;

    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        set_fault(self_test, "the client did not exit normally", 0);
        return;
    }
    switch ((enum doctor_client_end)WEXITSTATUS(status)) {
    case DOCTOR_CLIENT_COMPLETE:
        self_test->delivered = true;
        break;
    case DOCTOR_CLIENT_NO_HANDSHAKE:
        set_fault(self_test, "the client's handshake failed", 0);
        break;
    case DOCTOR_CLIENT_WRONG:
        set_fault(self_test, "the client decrypted other bytes than were sent", 0);
        break;
    case DOCTOR_CLIENT_SHORT:
        set_fault(self_test, "the stream ended early", 0);
        break;
    case DOCTOR_CLIENT_NO_CLOSE_NOTIFY:
        set_fault(self_test, "no close_notify was received", 0);
        break;
    }
}

/* Runs client and server. Forks before the loop is opened, so that the processes share no ring. */
static void run_client_and_server(struct self_test_run *run, struct tls_context *context, const struct suite *suite)
{
    int server;
    int client;
    int error = connect_pair(&server, &client);
    pid_t child;

    if (error < 0) {
        set_fault(run->self_test, "no connection over 127.0.0.1", error);
        return;
    }
    child = fork();
    if (child == 0) {
        close(server);
        _exit(doctor_client_run(client, suite, SELF_TEST_BYTES));
    }
    close(client);
    if (child < 0) {
        set_fault(run->self_test, "fork()", errno);
        close(server);
        return;
    }
    serve_one(run, context, server);
    check_client(run->self_test, child);
}

void doctor_self_test(const struct ktls_support *support, const struct suite *suite, struct self_test *out_self_test)
{
    static const struct tls_certificate certificate = {.certificate = {"self-signed", 11}};
    static const struct str name = {"localhost", 9};
    const struct tls_settings tls = {.names = &name,
                                     .name_count = 1,
                                     .certificates = &certificate,
                                     .certificate_count = 1,
                                     .ciphers = suite->version ? STR("") : str_from(suite->openssl),
                                     .ciphersuites = suite->version ? str_from(suite->openssl) : STR(""),
                                     .ktls_threshold = 1,
                                     .is_default = true};
    struct self_test_run *run = calloc(1, sizeof(*run));
    struct tls_context *context;
    char error[512] = "";

    *out_self_test = (struct self_test){.handshake = false};
    if (!run)
        return;
    run->self_test = out_self_test;
    run->log = (struct log){.level = LOG_ERROR, .sink = record_log_line, .owner = out_self_test};
    run->shared = (struct wire_shared){
        .log = &run->log, .ktls = support, .counters = &run->counters, .output_max = LIMIT_WORKER_OUTPUT};
    context = tls_context_create(&tls, 1, &run->log, error, sizeof(error));
    run->file = make_file();
    if (!context)
        set_fault(out_self_test, error, 0);
    else if (run->file < 0)
        set_fault(out_self_test, "memfd_create() failed", run->file);
    else
        run_client_and_server(run, context, suite);
    tls_context_destroy(context);
    if (run->file >= 0)
        close(run->file);
    free(run);
}
