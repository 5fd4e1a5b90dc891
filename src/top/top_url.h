/*
 * The URL of a status page: http://HOST[:PORT][/PATH][?QUERY]. HOST is a name, an IPv4 address or an IPv6 address in
 * brackets.
 */
#ifndef TOP_TOP_URL_H
#define TOP_TOP_URL_H

#include "base/limits.h"

#define TOP_URL_DEFAULT "http://127.0.0.1/status"

struct top_url {
    char text[LIMIT_TOP_URL + 1];
    char host[LIMIT_TOP_URL + 1];       /* without brackets */
    char port[6];                       /* default: 80 */
    char authority[LIMIT_TOP_URL + 1];  /* the value of Host */
    char target[LIMIT_TOP_URL + 1];     /* path and query; default: /status */
};

/* Parses `text` into `out_url`. Returns NULL, or a static sentence with the fault. */
const char *top_url_parse(const char *text, struct top_url *out_url);

#endif
