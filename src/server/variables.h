/*
 * nginx's variables, and sluice's own: tables of small functions of the exchange, by theme.
 */
#ifndef SERVER_VARIABLES_H
#define SERVER_VARIABLES_H

#include "base/clock.h"
#include "conf/template.h"
#include "http/exchange.h"

#include <sys/socket.h>

struct endpoint;
struct wire;

/* Subject of every variable: a const struct exchange * with a request. Request, connection, TLS, answer. */
extern const struct variable_table variables_core;
extern const struct variable_table variables_connection;
extern const struct variable_table variables_tls;
extern const struct variable_table variables_answer;
/* Rows for other tables; their subject is a const struct tls_session *. */
#define VARIABLES_OF_TLS 17
extern const struct variable variables_of_tls[VARIABLES_OF_TLS];

/*
 * The value of the fields that `parameter` names ("user_agent" for User-Agent), joined by ", " where there are several; data NULL
 * where there is none.
 */
struct str variable_of_headers(const struct headers *headers, struct str parameter, struct arena *arena);
/* Values that http and stream share: an address and its port in text, the address that a connection came to, the time. */
struct str variable_address(const struct sockaddr *address, struct arena *arena);
/* As many bytes as it has, where they stand: for keys. None of a unix: socket. */
struct str variable_binary_address(const struct sockaddr *address);
struct str variable_port(const struct sockaddr *address, struct arena *arena);
struct str variable_local_address(const struct endpoint *endpoint, const struct wire *wire, struct arena *arena);
struct str variable_msec(const struct clock *clock, struct arena *arena);
struct str variable_time_local(const struct clock *clock, struct arena *arena);
struct str variable_time_iso8601(const struct clock *clock, struct arena *arena);
/* Random, and the same however often it is asked for in one exchange, or in its children; data NULL: out of memory. */
struct str variable_request_id(const struct exchange *x);
/* The client's address in text, in the arena; for $remote_addr and the log. */
struct str variable_remote_addr(const struct exchange *x, struct arena *arena);

#endif
