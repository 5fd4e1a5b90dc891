/*
 * Shared by the files of the translation: the import in progress, the current scope, and the conversion of nginx's
 * words to YAML.
 */
#ifndef IMPORT_IMPORT_SCOPE_H
#define IMPORT_IMPORT_SCOPE_H

#include "import/import.h"
#include "import/yaml_builder.h"

struct import {
    struct arena *arena;
    const struct import_source *source;
    const struct rule *rules;           /* import_rules; the last row has no name */
    struct str prefix, directory;       /* start of nginx's relative paths; `directory`: for TLS and password files */
    struct nginx_directive *root;
    struct yaml_builder *root_builder;
    struct yaml_builder *main, *http;   /* of the builder; NULL until created */
    struct yaml_builder *addresses;     /* "ADDRESS ssl" and similar: the first server with it (import_listen.c) */
    struct import_note *notes;
    bool out_of_memory;
    unsigned conditions;                /* number of conditions that became maps, for the names of their variables */
    /* Features in use: proxying, FastCGI, directory listings, limits. */
    bool proxies, fastcgi, lists, limits;
};

/* A block of nginx's file, and the map of sluice that its directives are carried over to. */
struct scope {
    enum conf_scope kind;
    const struct scope *outer;
    const struct nginx_directive *block;
    struct yaml_builder *map;
    bool condition;                 /* the body of an `if` or limit_except */
};

struct rule;
typedef void import_translation(struct import *import, const struct scope *scope,
                                const struct nginx_directive *directive, const struct rule *rule);

/* The translation of one nginx directive. */
struct rule {
    const char *name;               /* a leading or trailing '*' stands for a family */
    unsigned scopes;                /* scopes in which it applies */
    import_translation *translate;
    const char *text;               /* argument of `translate`: a reason, a value */
};

/* import_rules.c: the table, ended by a row without a name. */
extern const struct rule import_rules[];

/* import_lookup.c: the first rule of import->rules for a directive; NULL: none. */
const struct rule *rule_find(const struct import *import, struct str name, enum conf_scope scope);
/* True if the name matches the pattern, which may begin or end with '*'. */
bool name_matches(const char *pattern, struct str name);
/* The directive of that name in the scope; NULL: none. */
const struct directive *find_sluice_directive(const struct import *import, struct str name, unsigned scopes);
/* The reason why sluice has no such directive, or the alternative; data NULL: unknown. */
struct str missing_reason(const struct import *import, struct str name);

/* import_walk.c: translates one directive, by its rule or unchanged. */
void translate_directive(struct import *import, const struct scope *scope, const struct nginx_directive *directive);
/* Carries over everything in the block to `map`. */
void translate_scope(struct import *import, const struct scope *outer, enum conf_scope kind,
                     const struct nginx_directive *block, struct yaml_builder *map);

/* import_output.c: adds a note for the directive. */
void import_add_note(struct import *import, enum import_note_kind kind, const struct nginx_directive *directive,
                     const char *why, ...)
    PRINTF_LIKE(4, 5);
/* Adds the directive to `map` as a comment. */
void import_comment_out(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive);
/* import_comment_out, with a note, and with a placeholder if needed (add_loss_placeholder). */
void import_omit(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive,
                 const char *why, ...)
    PRINTF_LIKE(4, 5);
/*
 * Adds the note of a directive that is not carried over, and a placeholder in the scope of `map` if needed
 * (add_loss_placeholder), which the note mentions first.
 */
void import_add_loss(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive,
                     struct str why);
/* Adds a key with a text, and the comments of the directive (may be NULL). */
struct yaml_builder *import_put(struct import *import, struct yaml_builder *map, const char *key, struct str text,
                                const struct nginx_directive *directive);
/* Adds an item to the list below `key`; otherwise as above. */
struct yaml_builder *import_put_item(struct import *import, struct yaml_builder *map, const char *key, struct str text,
                                     const struct nginx_directive *directive);

/*
 * import_loss.c: if the lost directive handles requests or restricts access, adds a placeholder to the scope of
 * `map`, which then responds with 503. True: added.
 */
bool add_loss_placeholder(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive);
/*
 * Handles a lost `listen`: adds a placeholder to an http server that has no other one, because it would listen on every
 * address. True: added.
 */
bool add_listen_placeholder(struct import *import, struct yaml_builder *map, const struct nginx_directive *listen);

/* import_words.c: texts are in the arena; when out of memory they are empty, and import->out_of_memory is set. */

struct str words_print(struct import *import, const char *format, ...) PRINTF_LIKE(2, 3);
/* Quotes a word for conf_read_words, if needed. */
struct str word_quote(struct import *import, struct str word);
/* Joins the words to one text. */
struct str words_join(struct import *import, const struct str *words, size_t count);
/* Converts names of variables to lower case, since they are case-insensitive in nginx. */
struct str word_variables(struct import *import, struct str word);
/* Replaces a line break and the blanks around it by one blank: nginx does not check header values for them. */
struct str word_fold(struct import *import, struct str word);
/* Adds the unit: "65" is 65 seconds in nginx. word_option does so after "=" in words that are known to be times. */
struct str word_time(struct import *import, struct str word);
struct str word_option(struct import *import, struct str word);
/* A path of nginx, made absolute; words that begin with a variable or are no path are unchanged. */
struct str word_path(struct import *import, struct str directory, struct str word);
/* True if the word contains $1 to $9 or the capture of that name (without "$"). */
bool word_has_capture(struct str word);
bool word_has_variable(struct str word, struct str name);

/* import_directive.c: rules for single directives. */
import_translation translate_unchanged, omit_unneeded, omit_unsupported, translate_path, translate_alias,
    translate_conf_path, translate_word, translate_text, translate_limit, translate_autoindex, translate_first_time,
    translate_last_time, translate_http_version, translate_rewrite, translate_pass, translate_grpc_pass,
    translate_protocols, translate_ssl, translate_names, translate_set_header, translate_in_http;
/* Adds the directive with this text in the form of its type, or a note if sluice has no directive of that name. */
void import_add_value(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                      struct str text);
/* True if the directive has a word; otherwise omits the directive. */
bool import_has_word(struct import *import, const struct scope *scope, const struct nginx_directive *directive);
/* import_logs.c */
import_translation translate_log, translate_error_log;
/* import_blocks.c: rules for blocks. */
import_translation translate_block, translate_server, translate_location, translate_upstream;
/* import_tables.c: rules for tables, and for directives that become tables. */
import_translation translate_map, translate_geo, translate_types, translate_log_format, translate_cache_path;
/* import_listen.c */
import_translation translate_listen;
/*
 * Records the settings of addresses before the servers of http are carried over: they apply to all servers of an
 * address.
 */
void record_addresses(struct import *import, const struct nginx_directive *http);
/* import_access.c */
import_translation translate_access;
/* "10.1.2.3/8" becomes "10.0.0.0/8"; other words are unchanged. */
struct str word_range(struct import *import, struct str word);
/* import_when.c */
import_translation translate_if, translate_limit_except;
/* import_set.c: an `if` that only sets variables. True if maps can replace it. */
bool becomes_set(struct import *import, const struct nginx_directive *directive);
void translate_set_if(struct import *import, const struct scope *scope, const struct nginx_directive *directive);

/*
 * import_order.c: analyses the directives that nginx runs in file order (set, if, rewrite, return, break);
 * unreachable ones are marked unreachable.
 */
void check_order(struct import *import, const struct scope *scope);
/* import_notes.c: notes directives that inner scopes do not inherit in nginx, but inherit here. */
void check_inheritance(struct import *import, const struct scope *scope);
/* import_defaults.c: adds nginx's defaults explicitly. */
void add_defaults(struct import *import, const struct nginx_directive *http);
void add_stream_defaults(struct import *import, const struct nginx_directive *stream, struct yaml_builder *map);

#endif
