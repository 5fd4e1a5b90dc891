/*
 * Shared by the readers of `upstream` directives. Private to upstream/.
 */
#ifndef UPSTREAM_UPSTREAM_CONF_H
#define UPSTREAM_UPSTREAM_CONF_H

#include "upstream/upstream.h"

/*
 * upstream_conf_server.c: converts "127.0.0.1:9001 weight=2 backup" to the equivalent map: the first word is the
 * value of `first` (NULL: it is like the others), and a word without a value is on. 0, -EINVAL (reported) or
 * -ENOMEM.
 */
MUST_CHECK int upstream_words_to_map(struct conf_reader *reader, const struct conf_node *node,
                                     const struct conf_words *words, const char *first, struct conf_node *out_map);
/* Reads a row of `server` into a struct upstream_server. */
int upstream_read_server(struct conf_reader *reader, const struct conf_node *node, void *out);

/* upstream_conf_resolver.c: reads `resolver` into a struct resolver_settings, except its timeout. */
int upstream_read_resolver(struct conf_reader *reader, const struct conf_node *node, void *out);

/* upstream_conf_sticky.c: reads `sticky` into a struct upstream_sticky. */
int upstream_read_sticky(struct conf_reader *reader, const struct conf_node *node, void *out);

/* The value of `zone`. */
struct upstream_zone_words {
    bool given;
    struct upstream_ports ports;
};

/* upstream_conf_zone.c: reads `zone` into a struct upstream_zone_words. */
int upstream_read_zone(struct conf_reader *reader, const struct conf_node *node, void *out);

/*
 * upstream_conf_check.c: reads `health_check` into a struct upstream_check *; upstream_check_complete
 * completes it. 0, -EINVAL (reported) or -ENOMEM.
 */
int upstream_read_check(struct conf_reader *reader, const struct conf_node *node, void *out);
/* Makes the texts of a check that depend on the group's `name`. 0 or -ENOMEM. */
MUST_CHECK int upstream_check_complete(struct upstreams *upstreams, struct upstream_check *check, struct str name);

#endif
