/*
 * nginx's variables and sluice's own: tables of small functions of the exchange, by subject.
 */
#ifndef SERVER_VARIABLES_H
#define SERVER_VARIABLES_H

#include "base/clock.h"
#include "conf/template.h"
#include "http/exchange.h"

#include <sys/socket.h>

struct endpoint;
struct wire;

/* Variables of request, connection, TLS and response. Their subject is a const struct exchange * with a request. */
extern const struct variable_table variables_core;
extern const struct variable_table variables_connection;
extern const struct variable_table variables_tls;
extern const struct variable_table variables_response;
/* Rows shared with `stream`; their subject is a const struct tls_session *. */
#define VARIABLES_OF_TLS 17
extern const struct variable variables_of_tls[VARIABLES_OF_TLS];

/*
 * Returns the value of the fields named by `parameter` ("user_agent" for User-Agent), several joined by ", "; data
 * NULL if there is none.
 */
struct str variable_of_headers(const struct headers *headers, struct str parameter, struct arena *arena);
/*
 * variable_values.c. Shared by http and stream: an address and its port in text, the local address of a connection, the
 * time.
 */
struct str variable_address(const struct sockaddr *address, struct arena *arena);
/* Returns the address bytes in network order, not copied, for keys. Empty for a unix: socket. */
struct str variable_binary_address(const struct sockaddr *address);
struct str variable_port(const struct sockaddr *address, struct arena *arena);
struct str variable_local_address(const struct endpoint *endpoint, const struct wire *wire, struct arena *arena);
struct str variable_msec(const struct clock *clock, struct arena *arena);
struct str variable_time_local(const struct clock *clock, struct arena *arena);
struct str variable_time_iso8601(const struct clock *clock, struct arena *arena);
/*
 * Returns a random id, the same for all evaluations in an exchange and its subrequests. data NULL: out of memory, or
 * the kernel's random generator is not initialised.
 */
struct str variable_request_id(const struct exchange *x);
/* Returns the client's address in text, in the arena; for $remote_addr and the log. */
struct str variable_remote_addr(const struct exchange *x, struct arena *arena);

#endif
