/*
 * Applies every rule to the configuration, to each server, or to each location, and sorts the findings.
 */
#include "lint/lint.h"

#include "site/when.h"

#include <stdlib.h>

const struct lint_rule *const lint_tables[] = {
    lint_rules_main,    lint_rules_tls,    lint_rules_route, lint_rules_files,
    lint_rules_headers, lint_rules_access, lint_rules_proxy, NULL};

static void run_rules(struct lint *lint, enum lint_subject of, const struct lint_place *place)
{
    for (size_t table = 0; lint_tables[table]; table++) {
        for (const struct lint_rule *rule = lint_tables[table]; rule->name; rule++) {
            lint->rule = rule;
            if (rule->of == of)
                rule->check(lint, place);
        }
    }
}

static void run_location_rules(struct lint *lint, const struct virtual_server *server,
                               const struct location *location, const struct location *outer)
{
    run_rules(lint, LINT_LOCATION, &(struct lint_place){server, location, outer, false});
    for (size_t i = 0; i < location->when_block_count; i++)
        run_rules(lint, LINT_LOCATION, &(struct lint_place){server, location->when_blocks[i].location, outer, true});
    for (size_t i = 0; i < location->inner_count; i++)
        run_location_rules(lint, server, location->inner[i], location);
    for (size_t i = 0; i < location->pattern_count; i++)
        run_location_rules(lint, server, location->patterns[i], location);
}

static int compare_findings(const void *a, const void *b)
{
    const struct lint_finding *left = a, *right = b;
    unsigned left_file = left->mark.file ? left->mark.file->order + 1 : 0;
    unsigned right_file = right->mark.file ? right->mark.file->order + 1 : 0;

    if (left_file != right_file)
        return left_file < right_file ? -1 : 1;
    if (left->mark.line != right->mark.line)
        return left->mark.line < right->mark.line ? -1 : 1;
    if (left->mark.column != right->mark.column)
        return left->mark.column < right->mark.column ? -1 : 1;
    return strcmp(lint_rule_name(left), lint_rule_name(right));
}

void lint_run(struct lint *lint)
{
    for (size_t i = 0; lint->configuration && i < lint->configuration->server_count; i++) {
        const struct virtual_server *server = lint->configuration->servers[i];

        if (!server->root)
            continue;
        run_rules(lint, LINT_SERVER, &(struct lint_place){server, server->root, NULL, false});
        run_location_rules(lint, server, server->root, NULL);
    }
    if (lint->configuration)
        run_rules(lint, LINT_WHOLE, &(struct lint_place){0});
    if (lint->count)
        qsort(lint->items, lint->count, sizeof(*lint->items), compare_findings);
}
