/*
 * A wire over a TCP connection on loopback. The client uses OpenSSL or plain bytes and shares no code with the wire.
 * One thread runs both by turns. Backends and transports are tables, so that each test runs with all of them.
 */
#ifndef TESTS_WIRE_KIT_H
#define TESTS_WIRE_KIT_H

#include "wire/wire.h"

#include <openssl/ssl.h>

struct transport {
    const char *name;
    int version;                    /* 0: plain */
    const char *cipher;
    enum wire_path bytes_path;      /* for bytes, without kTLS */
    enum wire_path file_path;
    unsigned reason;                /* of a large file, if the kernel has no kTLS */
};
extern const struct transport transports[];
extern const int transport_count;

int backend_count(void);

enum { KIT_CHUNKS = 64 };

struct kit {
    const struct transport *transport;
    struct loop loop;
    struct log log;
    char last_log[512];
    unsigned log_lines;             /* level info and above */
    struct tls_settings tls;
    struct tls_context *context;
    struct ktls_support support;
    struct wire_counters counters;
    struct wire_shared shared;
    struct wire_settings settings;

    /* the owner */
    struct wire wire;
    struct chunk plan[KIT_CHUNKS];  /* the response to a line from the client */
    int planned, given;
    bool close_after;               /* closes in order after the last chunk */
    bool consumes;                  /* consumes received bytes; false: leaves them */
    unsigned opened, closed, ending, rooms;
    enum wire_close_reason end;
    bool peer_ended;
    char received[65536];
    size_t received_length;
    bool receives_large;            /* requests further bytes by wire_receive_large */
    size_t received_max;            /* the largest number of bytes received at once */
    struct transfer transfer;

    /* the client */
    int client_fd;
    SSL_CTX *client_openssl;
    SSL *client;                    /* NULL: plain */
    bool raw;                       /* the client encrypts, but does not decrypt received bytes */
    bool client_connected;
    char *got;
    size_t got_length, got_capacity;
    size_t read_max;                /* most bytes that the client reads per turn; 0: all */
    bool got_end;                   /* the server's TCP stream has ended */
    bool got_close_notify;
    bool got_reset;
    char *tapped;                   /* all bytes from the server as the client's socket received them */
    size_t tapped_length;
};

/*
 * Call kit_prepare, then kit_open with the size of the socket buffers (0: the default). Between these two calls a test
 * may change kit.tls, kit.settings, kit.support and kit.shared.ktls_calls.
 */
void kit_prepare(struct kit *kit, int backend, const struct transport *transport);
void kit_open(struct kit *kit, int buffer);
/* Frees everything. The wire must be closed. */
void kit_close(struct kit *kit);

void kit_plan_bytes(struct kit *kit, struct str bytes);
void kit_plan_file(struct kit *kit, int fd, int64_t at, uint64_t length);
/* The owner sends the planned chunks as far as the wire has room. */
void kit_pump(struct kit *kit);

/* Called by kit.c: begin and end of a TLS client, and one turn of a client, which receives what is available. */
void kit_client_open(struct kit *kit);
void kit_client_close(struct kit *kit);
void kit_client_turn(struct kit *kit);
/* The client sends text, after the handshake. */
void kit_client_send(struct kit *kit, const char *text);
/*
 * The client reads the socket without decryption from here on, as a scripted kernel sends it. Forgets the bytes
 * received before.
 */
void kit_stop_client_tls(struct kit *kit);
/*
 * TLS 1.2 AES-GCM: returns the number of explicit nonces that the client has received, and the last of them. Fails the
 * test unless each is greater by one than the one before.
 */
unsigned kit_nonces(const struct kit *kit, uint64_t *out_last);
/* Runs one turn of both sides. */
void kit_turn(struct kit *kit);
/* Runs until the client has received `length` bytes, or the stream has ended, or a long timeout has expired. */
void kit_run_until_received(struct kit *kit, size_t length);
/* Runs until the wire is closed. The client closes when it has received the end. */
void kit_until_closed(struct kit *kit);
void kit_until_open(struct kit *kit);

/* Returns the sum of the counters of sent bytes, over all paths. */
uint64_t kit_counted(const struct kit *kit);

/* A file of `length` bytes, already unlinked; and the same bytes in memory. */
int kit_file(size_t length);
const char *kit_pattern(void);
enum { KIT_PATTERN = 8 * 1024 * 1024 };

#endif
