/*
 * `sluice lint`: what is legal and yet wrong. Rules look at a configuration that has been
 * loaded; each is a row of a table and a small function.
 */
#ifndef LINT_LINT_H
#define LINT_LINT_H

#include "command/options.h"
#include "site/configuration.h"

struct lint_rule;

struct lint_finding {
    const struct lint_rule *rule;   /* NULL: what the loader said */
    const char *level;              /* "error" or "warning" */
    struct conf_mark mark;
    struct str message;
    struct str hint;                /* the way out, or empty */
};

/* One look at one configuration; all memory is its arena's. */
struct lint {
    struct arena *arena;
    const struct configuration *configuration;
    const struct lint_rule *rule;   /* that looks at the moment */
    struct lint_finding *items;     /* by files, lines and columns once lint_run is done */
    size_t count, room;
    bool failed;                    /* out of memory */
};

/* What a rule looks at; NULL where it is not about one. */
struct lint_place {
    const struct virtual_server *server;
    const struct location *location; /* a server's own scope, too */
    const struct location *outer;   /* in which it stands; NULL for a server's own scope */
    bool laid_over;                 /* by a condition of `when` */
};

/* What a rule is asked about: once for the whole, once for each server of http, or for each of its locations. */
enum lint_of { LINT_WHOLE, LINT_SERVER, LINT_LOCATION };

struct lint_rule {
    const char *name;
    enum lint_of of;
    void (*check)(struct lint *lint, const struct lint_place *place);
    const char *help;               /* one sentence: what is wrong, and why it matters */
};

/* Tables, each ending with a row without a name; NULL after the last. */
extern const struct lint_rule lint_rules_access[], lint_rules_files[], lint_rules_headers[], lint_rules_main[], lint_rules_proxy[],
    lint_rules_route[], lint_rules_tls[];
extern const struct lint_rule *const lint_tables[];

/* Says that something is wrong, once a place for each rule. Not printed before the end. */
void lint_report(struct lint *lint, struct conf_mark mark, struct str hint, const char *format, ...) PRINTF_LIKE(4, 5);
/* Adds a finding as it is. */
void lint_add(struct lint *lint, const struct lint_finding *finding);
/* Asks every rule about everything, and sorts what they say. */
void lint_run(struct lint *lint);
/* The rule's name, or "load". */
const char *lint_rule_name(const struct lint_finding *finding);

/* In text, gcc's lines, JSON or SARIF 2.1.0 (OASIS). 0 or -ENOMEM. */
MUST_CHECK int lint_print(const struct lint *lint, enum output_format format, struct buffer *out);

/* The command. Exit 0: nothing to say; 1: something was found; 2: the configuration does not load. */
int command_lint(const struct options *options);

#endif
