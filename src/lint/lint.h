/*
 * `sluice lint`: reports valid settings that are probably mistakes. Rules examine a loaded configuration; a rule is a
 * row of a table and a function.
 */
#ifndef LINT_LINT_H
#define LINT_LINT_H

#include "command/options.h"
#include "site/configuration.h"

struct lint_rule;

struct lint_finding {
    const struct lint_rule *rule;   /* NULL: reported by the loader */
    const char *level;              /* "error" or "warning" */
    struct conf_mark mark;
    struct str message;
    struct str hint;                /* remedy, or empty */
};

/* One run over one configuration; all memory is in its arena. */
struct lint {
    struct arena *arena;
    const struct configuration *configuration;
    const struct lint_rule *rule;   /* current rule */
    struct lint_finding *items;     /* sorted by file, line and column after lint_run */
    size_t count, room;
    bool failed;                    /* out of memory */
};

/* The part of the configuration that a rule examines; members that do not apply are NULL. */
struct lint_place {
    const struct virtual_server *server;
    const struct location *location;    /* a location, or the scope of the server itself */
    const struct location *outer;       /* the enclosing location; NULL for a server's own scope */
    bool is_overlay;                    /* overlaid by a condition of `when` */
};

/* The unit of a rule: the whole configuration, each http server, or each of its locations. */
enum lint_subject { LINT_WHOLE, LINT_SERVER, LINT_LOCATION };

struct lint_rule {
    const char *name;
    enum lint_subject of;
    void (*check)(struct lint *lint, const struct lint_place *place);
    const char *help;               /* one sentence: the problem and its consequence */
};

/* Tables, each ended by a row without a name; NULL after the last. */
extern const struct lint_rule lint_rules_access[], lint_rules_files[], lint_rules_headers[], lint_rules_main[],
    lint_rules_proxy[], lint_rules_route[], lint_rules_tls[];
extern const struct lint_rule *const lint_tables[];

/* Adds a finding, once per position and rule. */
void lint_report(struct lint *lint, struct conf_mark mark, struct str hint, const char *format, ...) PRINTF_LIKE(4, 5);
/* Adds a finding unchanged. */
void lint_add(struct lint *lint, const struct lint_finding *finding);
/* Applies every rule and sorts the findings. */
void lint_run(struct lint *lint);
/* The rule's name, or "load". */
const char *lint_rule_name(const struct lint_finding *finding);

/* Prints as text, gcc lines, JSON or SARIF 2.1.0 (OASIS). 0 or -ENOMEM. */
MUST_CHECK int lint_print(const struct lint *lint, enum output_format format, struct buffer *out);

/* The command. Exit status 0: no findings; 1: findings; 2: the configuration does not load. */
int command_lint(const struct options *options);

#endif
