/*
 * `fastcgi_pass`: requests to FastCGI applications such as PHP-FPM. The module has the protocol and its directives;
 * modules/gateway has the parts that are common to all gateways. Private to the fastcgi module.
 */
#ifndef MODULES_FASTCGI_FASTCGI_H
#define MODULES_FASTCGI_FASTCGI_H

#include "modules/gateway/gateway.h"
#include "site/capture.h"

/* fastcgi_param */
struct fastcgi_param {
    struct str name;
    const struct template *value;
    bool if_not_empty;
};

struct fastcgi_params {
    struct fastcgi_param *items;
    size_t count;
};

struct fastcgi_conf {
    struct gateway_conf gateway;            /* fastcgi_pass, timeouts and so on */
    struct conf_rows params;                /* struct fastcgi_params, outer scopes first */
    struct fastcgi_params default_params;   /* defaults of parameters not set by fastcgi_param */
    bool keep_conn;                         /* fastcgi_keep_conn: connections are reused */
    const struct template *index;           /* fastcgi_index; NULL: none */
    const struct capture *split_path_info;  /* fastcgi_split_path_info: groups 1 and 2; NULL: none */
};

extern const struct directive fastcgi_directives[];
extern const struct variable_table fastcgi_variables;
extern const struct gateway fastcgi_gateway;

static inline const struct fastcgi_conf *fastcgi_conf_of(const struct gateway_request *p)
{
    return container_of(p->conf, struct fastcgi_conf, gateway);
}

/* fastcgi_conf.c */

int fastcgi_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);

/* fastcgi_conf_params.c */

/* Reads `fastcgi_param` into a struct fastcgi_params: "NAME value [if_not_empty]", or a map from names to values. */
directive_row fastcgi_read_params;
/* Sets the parameters that need no fastcgi_param. 0, or -errno (reported). */
MUST_CHECK int fastcgi_set_default_params(struct fastcgi_params *params, struct conf_reader *reader,
                                          const struct conf_node *at);

/* fastcgi_params.c */

/* Writes the beginning of a request with all parameters to p->sent.head. Errors as gateway.write_head. */
int fastcgi_write_head(struct gateway_request *p, struct str *out_fault);

#endif
