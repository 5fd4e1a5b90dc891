/*
 * The response of a worker to a query of the control socket: its connections, or whether it closed one. The query
 * comes from the master, and the response goes to the worker that sent the query (server/worker_query.h).
 */
#ifndef SERVER_CONNECTION_QUERY_H
#define SERVER_CONNECTION_QUERY_H

#include "base/limits.h"
#include "server/worker.h"

enum { QUERY_ROWS = 11 }; /* with them, a packet and the kernel's own data fit into 8 KiB */

/* One connection. Texts end with NUL; longer ones are cut. */
struct connection_row {
    uint64_t number;                /* $connection */
    uint64_t received, sent;        /* bytes of the socket, including TLS records; without those of kernel TLS */
    uint64_t seconds;               /* since it was accepted */
    uint32_t requests;              /* in progress: more than one only in HTTP/2 */
    uint8_t state;                  /* enum connection_state */
    uint8_t tls_path;               /* enum wire_path, of the response in progress */
    char protocol[16];              /* "http/1.1", "h2", "stream", "upgraded"; empty: handshake */
    char tls[8];                    /* "TLSv1.3"; empty: plain, or in the handshake */
    char client[64];                /* address and port of the peer */
    char listen[128];
    char server[128];               /* server_name; may be empty */
    char method[16];                /* of the newest request in progress; empty: none */
    /* The same: as received, without its query component; bytes that are not visible ASCII percent-encoded. */
    char path[LIMIT_CONTROL_PATH];
};

/* One packet. A worker sends one or more; the last has fewer than QUERY_ROWS rows. */
struct query_response {
    uint64_t pid;                   /* of the worker */
    /* Except those of the control socket; in one packet of the worker, in the others 0. */
    uint64_t connections;
    uint32_t closed;                /* number of connections that were closed: 0 or 1 */
    uint32_t row_count;
    struct connection_row rows[QUERY_ROWS];
};

/*
 * Responds on `fd`, which is closed: closes connection `number` by RST, or (0) lists at most `rows` connections. Does
 * not wait: rows for which the socket has no room are omitted.
 */
void connection_query_respond(struct worker *worker, uint64_t number, uint32_t rows, int fd);
/* The bytes of a packet with this number of rows. */
size_t query_response_size(unsigned rows);
/* Checks a received packet, which another worker wrote: true if counts and texts are within their bounds. */
bool query_response_valid(const struct query_response *response, size_t length);

/* Fills in what http and stream have in common. */
void connection_row_common(struct connection_row *row, const struct endpoint *endpoint,
                           const struct virtual_server *server, const union proxy_address *peer,
                           const struct wire *wire);

#endif
