/*
 * What the files that read the directives of an `upstream` block share. Private to upstream.
 */
#ifndef UPSTREAM_UPSTREAM_CONF_H
#define UPSTREAM_UPSTREAM_CONF_H

#include "upstream/upstream.h"

/* upstream_conf_server.c */

/*
 * "127.0.0.1:9001 weight=2 backup" as the map that it stands for: the first word is the value of `first` (NULL: it is as the others),
 * and a word without a value is on. 0, -EINVAL (reported) or -ENOMEM.
 */
MUST_CHECK int upstream_words_to_map(struct conf_reader *reader, const struct conf_node *node, const struct conf_words *words,
                                     const char *first, struct conf_node *out_map);
/* A row of `server`: a struct upstream_server. */
int upstream_read_server(struct conf_reader *reader, const struct conf_node *node, void *out);

/* upstream_conf_resolver.c: `resolver`, a struct resolver_settings but for its timeout. */
int upstream_read_resolver(struct conf_reader *reader, const struct conf_node *node, void *out);

/* upstream_conf_sticky.c: `sticky`, a struct upstream_sticky. */
int upstream_read_sticky(struct conf_reader *reader, const struct conf_node *node, void *out);

/* upstream_conf_check.c: `health_check`, a struct upstream_check *; complete once the group's name is known. 0 or -ENOMEM. */
int upstream_read_check(struct conf_reader *reader, const struct conf_node *node, void *out);
MUST_CHECK int upstream_check_complete(struct upstreams *upstreams, struct upstream_check *check, struct str name);

#endif
