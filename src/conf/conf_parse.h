/*
 * Parses one source into nodes: reads libyaml's events, resolves anchors, merge keys and environment references, and
 * rejects values that YAML would silently change. conf_include.h resolves includes.
 */
#ifndef CONF_CONF_PARSE_H
#define CONF_CONF_PARSE_H

#include "base/table.h"
#include "conf/conf_source.h"
#include "conf/source_text.h"

#include <yaml.h>

/*
 * Returns the root node of a file; an empty file gives a scalar that is `absent`. Every error is reported; after a
 * syntax error the broken block is skipped and parsing continues. NULL: nothing could be parsed.
 */
struct conf_node *parse_source(struct conf_loader *loader, const struct conf_file *file);
/* Reports that the source is written in nginx's language. */
void parse_reject_nginx(struct conf_loader *loader, struct conf_mark mark);

/* Private to the parser. The latest scalar, for the translation of libyaml's messages. */
struct parsed_scalar {
    unsigned line, column;          /* from 1; line 0: none */
    unsigned end_line, end_column;  /* the position after it */
    bool quoted;
};

struct parse {
    struct conf_loader *loader;
    const struct conf_file *file;
    yaml_parser_t yaml;
    yaml_event_t event;
    struct source_cursor cursor;
    struct table anchors;           /* name -> node; the size of an unfinished node is 0 */
    struct buffer pending;          /* members of the collections being parsed */
    struct parsed_scalar last;
    size_t plain_end;               /* offset after the latest plain scalar */
    bool damaged;                   /* blocks were blanked out: a key that is not found may be in them */
    bool syntax;                    /* libyaml reported a syntax error */
};

/* A map being parsed. */
struct map_reader {
    struct conf_node *map;
    size_t size;                    /* size of its members so far */
    struct table index;             /* key -> key node */
    size_t start;                   /* in pending */
    bool merges;
    bool skip_next;                 /* the next key is the rest of a rejected one, which a comma ended: skip it */
};

/* Converts libyaml's positions, which count from 0, to marks, which count from 1. */
static inline struct conf_mark mark_of(const struct parse *parse, yaml_mark_t mark)
{
    return (struct conf_mark){parse->file, (unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

/* Reports out of memory and stops parsing. */
void parse_out_of_memory(struct parse *parse);
/* Counts nodes. False: LIMIT_CONF_NODES is exceeded, which is reported, and parsing stops. */
bool parse_count(struct parse *parse, size_t more, struct conf_mark mark);
/* Creates and counts a node for the current event. NULL: parsing stops. */
struct conf_node *parse_node(struct parse *parse, enum conf_kind kind, bool flow);
/* Records the node under its anchor, unless that is NULL. */
void parse_anchor(struct parse *parse, const yaml_char_t *anchor, struct conf_node *node);
/* The current event as a scalar node: environment, tag, trailing comment. NULL: parsing stops. */
struct conf_node *scalar_read(struct parse *parse, bool flow);
/* Rejects unknown tags; !include sets node->include. */
void tag_check(struct parse *parse, struct conf_node *node, const yaml_char_t *tag);
/* Detects accidental keys inside {}. True: the pair is reported and must be left out. */
bool flow_key_rejected(struct parse *parse, struct map_reader *reader, const struct conf_node *key,
                       bool value_absent);

/* Translates libyaml's error for the user. Returns the line (from 1) in which the broken block begins. */
unsigned syntax_report(struct conf_errors *errors, const struct conf_file *file, const yaml_parser_t *yaml,
                       const struct parsed_scalar *last);
/*
 * Reports the syntax error that ended a pass, and blanks out the broken block in `text`, the copy of the file that was
 * parsed. Before the pass there were `known` errors. False: nothing is left to blank out, so parsing is finished.
 */
bool syntax_skip(struct parse *parse, char *text, unsigned known);

#endif
