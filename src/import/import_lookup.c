/*
 * Lookups of a directive's name: among the rules, among sluice's directives, and in the vocabulary of those that
 * sluice does not have.
 */
#include "conf/conf_vocabulary.h"
#include "import/import_scope.h"

bool name_matches(const char *pattern, struct str name)
{
    struct str own = str_from(pattern);

    if (str_starts(own, STR("*")) && str_ends(own, STR("*")))
        return str_search(name, str_slice(own, 1, own.length - 1)) >= 0;
    if (str_starts(own, STR("*")))
        return str_ends(name, str_skip(own, 1));
    if (str_ends(own, STR("*")))
        return str_starts(name, str_slice(own, 0, own.length - 1));
    return str_equal(own, name);
}

const struct rule *rule_find(const struct import *import, struct str name, enum conf_scope scope)
{
    for (const struct rule *rule = import->rules; rule->name; rule++) {
        if ((rule->scopes & (unsigned)scope) && name_matches(rule->name, name))
            return rule;
    }
    return NULL;
}

const struct directive *find_sluice_directive(const struct import *import, struct str name, unsigned scopes)
{
    const struct conf_schema *schema = import->source->schema;

    for (size_t i = 0; i < schema->count; i++) {
        for (const struct directive *own = schema->groups[i]->directives; own && own->name; own++) {
            if ((own->scopes & scopes) && str_equal(str_from(own->name), name))
                return own;
        }
    }
    return NULL;
}

struct str missing_reason(const struct import *import, struct str name)
{
    struct str hint;

    switch (vocabulary_find(import->source->schema, name, &hint)) {
    case VOCABULARY_UNSUPPORTED:
        return hint;
    case VOCABULARY_LEFT_OUT:
        return STR("it is not in this build of sluice");
    case VOCABULARY_UNKNOWN:
        break;
    }
    return (struct str){NULL, 0};
}
