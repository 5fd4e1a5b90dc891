/*
 * What the parts of the translation share: the import under way, the scope that is being carried over, and the words of
 * nginx as words of YAML.
 */
#ifndef IMPORT_IMPORT_SCOPE_H
#define IMPORT_IMPORT_SCOPE_H

#include "import/import.h"
#include "import/yaml_builder.h"

struct import {
    struct arena *arena;
    const struct import_source *source;
    struct str prefix, folder;      /* where nginx's relative paths start: most of them, and those of TLS and passwords */
    struct nginx_directive *root;
    struct yaml_builder *root_builder;
    struct yaml_builder *main, *http;      /* of the builder; NULL until they are there */
    struct yaml_builder *addresses;        /* "ADDRESS ssl" and its kin: the first server that says so (import_listen.c) */
    struct import_note *notes;
    bool out_of_memory;
    unsigned conditions;            /* that became maps: numbers their variables */
    bool proxies, fastcgi, lists, limits; /* something is passed on, or to an application; folders are listed; who comes too often is refused */
};

/* One block of nginx's on its way into one map. */
struct scope {
    enum conf_scope kind;
    const struct scope *outer;
    const struct nginx_directive *block;
    struct yaml_builder *map;
    bool condition;                 /* the body of an `if` or of its kin */
};

struct rule;
typedef void import_carry(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                          const struct rule *rule);

/* What is to be done with a directive of nginx's. */
struct rule {
    const char *name;               /* one that ends with '*' stands for its family */
    unsigned scopes;                /* where it holds */
    import_carry *carry;
    const char *text;               /* what `carry` makes of it: a reason, a value */
};

/* import_rules.c: the first rule for it; NULL: none. */
const struct rule *rule_find(struct str name, enum conf_scope scope);
/* True where the name is the pattern's, which may begin or end with '*'. */
bool name_matches(const char *pattern, struct str name);
/* sluice's own directive of that name in the scope; NULL: none. */
const struct directive *own_directive(const struct import *import, struct str name, unsigned scopes);

/* import.c */

/* Why sluice has no directive of that name, or what to do instead; data NULL: it is not known. */
struct str why_missing(const struct import *import, struct str name);

void carry_directive(struct import *import, const struct scope *scope, const struct nginx_directive *directive);
/* Everything in the block; `map` is where it goes. */
void carry_scope(struct import *import, const struct scope *outer, enum conf_scope kind,
                 const struct nginx_directive *block, struct yaml_builder *map);
/* A note, of the directive's own line. */
void import_add_note(struct import *import, enum import_verdict verdict, const struct nginx_directive *directive, const char *why, ...)
    PRINTF_LIKE(4, 5);
/* The directive becomes a comment in `map`. */
void import_comment_out(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive);
/* The same with a note, and with a mark where it answers or protects (mark_loss). */
void import_leave_out(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive, const char *why, ...)
    PRINTF_LIKE(4, 5);
/* A key and its text, with the comments of the directive (NULL: none). */
struct yaml_builder *import_put(struct import *import, struct yaml_builder *map, const char *key, struct str text,
                                const struct nginx_directive *directive);
/* An item of the list below `key`, likewise. */
struct yaml_builder *import_put_item(struct import *import, struct yaml_builder *map, const char *key, struct str text,
                                     const struct nginx_directive *directive);

/* import_loss.c: where the lost directive answers or protects, marks the scope that `map` stands in, so that it answers 503. True: it
 * is marked. */
bool mark_loss(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive);
/* `listen` was lost: marks a server of http that has no other, since it would listen on every address. True: it is marked. */
bool mark_unbound(struct import *import, struct yaml_builder *map, const struct nginx_directive *listen);

/* import_words.c: all texts live in the arena; where that is full they are empty, and import->out_of_memory is set. */

struct str words_print(struct import *import, const char *format, ...) PRINTF_LIKE(2, 3);
/* One word as conf_read_words takes it: quoted where it must be. */
struct str word_quote(struct import *import, struct str word);
/* Words from the first on, as one text. */
struct str words_join(struct import *import, const struct str *words, size_t count);
/* nginx knows variables in letters of either case. */
struct str word_variables(struct import *import, struct str word);
/* A line break with the blanks around it is one blank: a header field has one line, which nginx does not check. */
struct str word_fold(struct import *import, struct str word);
/* "65" is 65 seconds, in nginx alone; the same behind "=" in words that are known to be times. */
struct str word_time(struct import *import, struct str word);
struct str word_option(struct import *import, struct str word);
/* A path as nginx understands it, absolute; one that begins with a variable, and words that are no path, stay. */
struct str word_path(struct import *import, struct str folder, struct str word);
/* True where $1 to $9 or a variable of that name (without "$") is in it. */
bool word_has_capture(struct str word);
bool word_has_variable(struct str word, struct str name);

/* import_carry.c: rules for single directives. */
import_carry carry_own, carry_needless, carry_refused, carry_path, carry_conf_path, carry_raw, carry_text, carry_limit, carry_autoindex, carry_first_time,
    carry_last_time, carry_http_version, carry_rewrite, carry_pass, carry_protocols, carry_ssl, carry_names, carry_log, carry_set_header,
    carry_error_log, carry_lifted;
/* import_blocks.c: rules for what has a block, or becomes one. */
import_carry carry_block, carry_server, carry_location, carry_upstream, carry_map, carry_geo, carry_types,
    carry_log_format, carry_cache_path;
/* import_listen.c */
import_carry carry_listen;
/* Before the servers of http are carried over: what each says of its addresses holds for the others there. */
void note_addresses(struct import *import, const struct nginx_directive *http);
/* import_access.c */
import_carry carry_access;
/* "10.1.2.3/8" as the range that it is, "10.0.0.0/8"; any other word as it is. */
struct str word_range(struct import *import, struct str word);
/* import_when.c */
import_carry carry_if, carry_limit_except;
/* The words of an `if` without its brackets, at least one; false: it is no condition that sluice has. */
bool condition_words(struct import *import, const struct nginx_directive *directive, struct str **out_words, size_t *out_count);
/* import_set.c: an `if` that only sets variables. True where maps can stand for its condition. */
bool becomes_set(struct import *import, const struct nginx_directive *directive);
void carry_set_if(struct import *import, const struct scope *scope, const struct nginx_directive *directive);

/* import_when.c: what nginx runs in the order of the file (set, if, rewrite, return, break), judged before it is carried:
 * what is never reached is marked dead. */
void check_order(struct import *import, const struct scope *scope);
/* import_notes.c: what inner scopes forget in nginx, and keep here. */
void check_inheritance(struct import *import, const struct scope *scope);
/* import_defaults.c: what nginx does where nothing is said of it. */
void add_defaults(struct import *import, const struct nginx_directive *http);
void add_stream_defaults(struct import *import, const struct nginx_directive *stream, struct yaml_builder *map);

#endif
