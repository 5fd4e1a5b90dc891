/*
 * A wire over a real loopback connection, with a client at the other end that shares nothing with it: OpenSSL's, or
 * plain bytes. Both run in one thread, turn by turn. Transports and backends are tables, so that each test runs over all.
 */
#ifndef TESTS_WIRE_KIT_H
#define TESTS_WIRE_KIT_H

#include "wire/wire.h"

#include <openssl/ssl.h>

struct transport {
    const char *name;
    int version;                    /* 0: plain */
    const char *cipher;
    enum wire_path bytes_path;      /* of bytes, without kTLS */
    enum wire_path file_path;
    unsigned reason;                /* of a large file, without kTLS in the kernel */
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
    struct chunk plan[KIT_CHUNKS];  /* what it answers to a line */
    int planned, given;
    bool close_after;               /* orderly, once all is given */
    bool greedy;                    /* takes what it receives; else nothing */
    unsigned opened, closed, ending, rooms;
    enum wire_close_reason end;
    bool peer_ended;
    char heard[65536];
    size_t heard_length;
    struct wire_transfer transfer;

    /* the client */
    int far;
    SSL_CTX *client_openssl;
    SSL *client;                    /* NULL: plain */
    bool raw;                       /* the client still seals, but reads the socket as it is */
    bool client_connected;
    char *got;
    size_t got_length, got_capacity;
    size_t read_max;                     /* most bytes read by the client in one turn; 0: all there is */
    bool got_end;                   /* the peer's TCP stream has ended */
    bool got_close_notify;
    bool got_reset;
    char *tapped;                   /* everything that came from the server, as it was on the wire */
    size_t tapped_length;
};

/* Small socket buffers where `buffer` is not 0. Fields of kit.tls, kit.settings, kit.support and kit.shared.ktls_calls may be set between the two. */
void kit_prepare(struct kit *kit, int backend, const struct transport *transport);
void kit_open(struct kit *kit, int buffer);
/* Everything is freed; the wire must be closed. */
void kit_close(struct kit *kit);

void kit_plan_bytes(struct kit *kit, struct str bytes);
void kit_plan_file(struct kit *kit, int fd, int64_t at, uint64_t length);
/* The owner gives what is planned, as far as there is room. */
void kit_pump(struct kit *kit);

/* The client says something (after the handshake). */
void kit_say(struct kit *kit, const char *text);
/* TLS 1.2 AES-GCM: how many explicit nonces the client has seen, each one more than the one before; the last of them. */
unsigned kit_nonces(const struct kit *kit, uint64_t *out_last);
/* One turn of both sides. */
void kit_turn(struct kit *kit);
/* Turns until the client has got `length` bytes, or the stream has ended, or far too much time has passed. */
void kit_until_got(struct kit *kit, size_t length);
/* Turns until the wire is closed. The client ends, too, once it has seen the end. */
void kit_until_closed(struct kit *kit);
void kit_until_open(struct kit *kit);

/* What the counters say has left, by all ways together. */
uint64_t kit_counted(const struct kit *kit);

/* A file of `length` bytes, unlinked; and the same bytes in memory. */
int kit_file(size_t length);
const char *kit_pattern(void);
enum { KIT_PATTERN = 8 * 1024 * 1024 };

#endif
