/*
 * One source to nodes: libyaml's events, with anchors, merge keys and the environment
 * done and YAML's silent traps refused. Includes are not its matter (conf_include.h).
 */
#ifndef CONF_CONF_PARSE_H
#define CONF_CONF_PARSE_H

#include "base/table.h"
#include "conf/conf_source.h"

#include <yaml.h>

/*
 * The root node of a file; a file without content gives a scalar that is `absent`. Every error is reported; after
 * a syntax error the broken block is left out and reading goes on, to find more. NULL: nothing could be read.
 */
struct conf_node *parse_source(struct conf_loader *loader, const struct conf_file *file);
/* Reports that the source is written in the language of nginx. */
void parse_refuse_nginx(struct conf_loader *loader, struct conf_mark mark);

/* What the parser's own files share. */
/* Of the parser, for the translation of libyaml's messages: the scalar that came last. */
struct parsed_scalar {
    unsigned line, column;          /* from one; line 0: none */
    unsigned end_line, end_column;  /* the place after it */
    bool quoted;
};

struct parse {
    struct conf_loader *loader;
    const struct conf_file *file;
    yaml_parser_t yaml;
    yaml_event_t event;
    struct source_cursor cursor;
    struct table anchors;           /* name -> node; an open one has size 0 */
    struct buffer pending;          /* pairs and items of the collections being read */
    struct parsed_scalar last;
    size_t plain_end;               /* offset behind the plain scalar that came last */
    bool damaged;                   /* blocks were blanked out: what is missing may not be missing */
    bool syntax;                    /* libyaml stopped */
};

/* A map being read. */
struct map_reader {
    struct conf_node *map;
    size_t size;                    /* of its members so far */
    struct table index;             /* key -> key node */
    size_t start;                   /* in pending */
    bool merges;
    bool skip_next;                 /* the rest of a key that a comma cut */
};

/* libyaml counts lines and columns from zero, people from one. */
static inline struct conf_mark mark_of(const struct parse *parse, yaml_mark_t mark)
{
    return (struct conf_mark){parse->file, (unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

/* Reports that memory has run out; reading stops. */
void parse_out_of_memory(struct parse *parse);
/* Counts nodes against the cap (false: it is passed, reported, and reading stops). */
bool parse_count(struct parse *parse, size_t more, struct conf_mark mark);
/* A node that begins with the current event, counted; NULL: reading stops. */
struct conf_node *parse_node(struct parse *parse, enum conf_kind kind, bool flow);
/* Remembers the node under its anchor; NULL anchor: nothing. */
void parse_anchor(struct parse *parse, const yaml_char_t *anchor, struct conf_node *node);
/* The current event as a scalar node: environment, tag, trailing comment. NULL: reading stops. */
struct conf_node *scalar_read(struct parse *parse, bool flow);
/* Refuses tags that mean nothing here; !include sets node->include. */
void tag_check(struct parse *parse, struct conf_node *node, const yaml_char_t *tag);
/* The traps of keys inside {}; true: the pair is reported and must be left out. */
bool flow_key_refused(struct parse *parse, struct map_reader *reader, const struct conf_node *key,
                      bool value_absent);

/*
 * Says in plain words what libyaml stopped at, where the user would look for it. Returns the line
 * (from one) with which the broken block begins.
 */
unsigned syntax_report(struct conf_errors *errors, const struct conf_file *file, const yaml_parser_t *yaml,
                       const struct parsed_scalar *last);

#endif
