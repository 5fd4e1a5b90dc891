/*
 * Prints the tables as JSON Schema (draft 7) for editors. The schema accepts numbers and booleans as words, since YAML
 * editors assign these types to them.
 */
#include "conf/conf_schema.h"
#include "conf/conf_vocabulary.h"

/* A writer of indented JSON. After the first failure it writes nothing more. */
struct json {
    struct buffer *out;
    unsigned depth;
    bool first; /* the innermost collection is still empty */
    int error;
};

static void json_raw(struct json *json, struct str text)
{
    if (json->error == 0)
        json->error = buffer_append(json->out, text);
}

/* Begins a line for the next member, after a comma if needed. */
static void json_member(struct json *json)
{
    json_raw(json, json->first ? STR("\n") : STR(",\n"));
    for (unsigned i = 0; i < json->depth; i++)
        json_raw(json, STR("  "));
    json->first = false;
}

static void json_string(struct json *json, struct str text)
{
    json_raw(json, STR("\""));
    if (json->error == 0)
        json->error = template_escape_json(json->out, text);
    json_raw(json, STR("\""));
}

static void json_key(struct json *json, const char *key)
{
    json_member(json);
    json_string(json, str_from(key));
    json_raw(json, STR(": "));
}

static void json_open(struct json *json)
{
    json_raw(json, STR("{"));
    json->depth++;
    json->first = true;
}

static void json_close(struct json *json)
{
    json->depth--;
    json->first = true;
    json_member(json);
    json_raw(json, STR("}"));
}

static void json_pair(struct json *json, const char *key, const char *value)
{
    json_key(json, key);
    json_string(json, str_from(value));
}

static void json_pair_raw(struct json *json, const char *key, const char *value)
{
    json_key(json, key);
    json_raw(json, str_from(value));
}

#define ENVIRONMENT "{\"type\": \"string\", \"pattern\": \"\\\\$\\\\{[A-Z]\"}"
#define TEXT        "{\"type\": [\"string\", \"number\", \"boolean\"]}"
#define WORDS       "[" TEXT ", {\"type\": \"array\", \"items\": " TEXT "}]"

static void print_number(struct json *json, const struct directive *directive)
{
    json_key(json, "anyOf");
    json_raw(json, STR("[{\"type\": \"integer\""));
    if (json->error == 0)
        json->error = buffer_printf(json->out, ", \"minimum\": %llu", (unsigned long long)directive->low);
    if (json->error == 0 && directive->high)
        json->error = buffer_printf(json->out, ", \"maximum\": %llu", (unsigned long long)directive->high);
    json_raw(json, STR("}, " ENVIRONMENT "]"));
}

static void print_enum(struct json *json, const char *const *choices)
{
    bool booleans = false;

    json_raw(json, STR("{\"enum\": ["));
    for (size_t i = 0; choices[i]; i++) {
        if (i)
            json_raw(json, STR(", "));
        json_string(json, str_from(choices[i]));
        booleans |= strcmp(choices[i], "on") == 0 || strcmp(choices[i], "off") == 0;
    }
    json_raw(json, booleans ? STR(", true, false]}") : STR("]}"));
}

static void print_choice(struct json *json, const struct directive *directive)
{
    json_key(json, "anyOf");
    json_raw(json, STR("["));
    print_enum(json, directive->choices);
    json_raw(json, STR(", " ENVIRONMENT "]"));
}

static void print_flags(struct json *json, const struct directive *directive)
{
    json_key(json, "anyOf");
    json_raw(json, STR("[{\"type\": \"string\"}, {\"type\": \"array\", \"items\": "));
    print_enum(json, directive->choices);
    json_raw(json, STR("}]"));
}

static void print_repeat(struct json *json, const struct directive *directive)
{
    const char *item = directive->schema ? directive->schema : TEXT;

    json_key(json, "anyOf");
    json_raw(json, STR("["));
    json_raw(json, str_from(item));
    json_raw(json, STR(", {\"type\": \"array\", \"items\": "));
    json_raw(json, str_from(item));
    json_raw(json, STR("}]"));
}

static void print_directive(struct json *json, const struct directive *directive);

static void print_block(struct json *json, const struct directive *directive)
{
    json_pair(json, "type", "object");
    json_pair_raw(json, "additionalProperties", "false");
    json_key(json, "properties");
    json_open(json);
    for (const struct directive *child = directive->children; child->name; child++)
        print_directive(json, child);
    json_close(json);
}

static void print_type(struct json *json, const struct directive *directive)
{
    switch (directive->type) {
    case DIRECTIVE_TEXT:
    case DIRECTIVE_PATH:
    case DIRECTIVE_TEMPLATE:
        json_pair_raw(json, "type", "[\"string\", \"number\", \"boolean\"]");
        break;
    case DIRECTIVE_NUMBER:
        print_number(json, directive);
        break;
    case DIRECTIVE_SIZE:
        json_pair_raw(json, "anyOf",
                      "[{\"type\": \"integer\", \"minimum\": 0}, {\"type\": \"string\", \"pattern\": "
                      "\"^[0-9]+([kKmMgG]([iI]?[bB])?)?$\"}, " ENVIRONMENT "]");
        break;
    case DIRECTIVE_DURATION:
        json_pair_raw(json, "anyOf",
                      "[{\"const\": 0}, {\"type\": \"string\", \"pattern\": "
                      "\"^([0-9]+(ms|[smhdwMy]) ?)+$\"}, " ENVIRONMENT "]");
        break;
    case DIRECTIVE_SWITCH:
        json_pair_raw(json, "anyOf",
                      "[{\"type\": \"boolean\"}, {\"enum\": [\"on\", \"off\", \"true\", \"false\", "
                      "\"yes\", \"no\"]}, " ENVIRONMENT "]");
        break;
    case DIRECTIVE_CHOICE:
        print_choice(json, directive);
        break;
    case DIRECTIVE_FLAGS:
        print_flags(json, directive);
        break;
    case DIRECTIVE_WORDS:
    case DIRECTIVE_TEMPLATES:
        json_pair_raw(json, "anyOf", WORDS);
        break;
    case DIRECTIVE_REPEAT:
        print_repeat(json, directive);
        break;
    case DIRECTIVE_BLOCK:
        print_block(json, directive);
        break;
    case DIRECTIVE_CUSTOM:
        json_key(json, "allOf");
        json_raw(json, STR("["));
        json_raw(json, directive->schema ? str_from(directive->schema) : STR(TEXT));
        json_raw(json, STR("]"));
        break;
    }
}

static void print_directive(struct json *json, const struct directive *directive)
{
    json_key(json, directive->name);
    json_open(json);
    json_pair(json, "description", directive->help);
    if (directive->deprecated) {
        json_pair_raw(json, "deprecated", "true");
        json_pair(json, "deprecationMessage", directive->deprecated);
    }
    if (directive->default_value)
        json_pair(json, "default", directive->default_value);
    print_type(json, directive);
    json_close(json);
}

static const struct {
    enum conf_scope scope;
    const char *name;
} definitions[] = {
    {SCOPE_EVENTS, "events"},
    {SCOPE_HTTP, "http"},
    {SCOPE_SERVER, "server"},
    {SCOPE_LOCATION, "location"},
    {SCOPE_UPSTREAM, "upstream"},
    {SCOPE_STREAM, "stream"},
    {SCOPE_STREAM_SERVER, "stream_server"},
};

static void print_reference_to(struct json *json, const char *name)
{
    if (json->error == 0)
        json->error = buffer_printf(json->out, "{\"$ref\": \"#/definitions/%s\"}", name);
}

/* `server` repeats, `location` and `upstream` are maps of scopes by name, others occur once. */
static void print_inner(struct json *json, const char *key, const char *definition)
{
    json_key(json, key);
    if (strcmp(key, "server") == 0) {
        json_raw(json, STR("{\"anyOf\": ["));
        print_reference_to(json, definition);
        json_raw(json, STR(", {\"type\": \"array\", \"items\": "));
        print_reference_to(json, definition);
        json_raw(json, STR("}]}"));
    } else if (strcmp(key, "location") == 0 || strcmp(key, "upstream") == 0) {
        json_raw(json, STR("{\"type\": \"object\", \"additionalProperties\": "));
        print_reference_to(json, definition);
        json_raw(json, STR("}"));
    } else {
        print_reference_to(json, definition);
    }
}

static void print_inners(struct json *json, const struct conf_schema *schema, enum conf_scope scope)
{
    const struct block_word *block;

    for (size_t i = 0; (block = vocabulary_block(i)); i++) {
        unsigned opens = block->opens_scopes;

        if (!(block->allowed_in & scope) || (scope == SCOPE_UPSTREAM && (opens & SCOPE_SERVER)))
            continue;
        if (opens & SCOPE_SERVER)
            opens = scope == SCOPE_STREAM ? SCOPE_STREAM_SERVER : SCOPE_SERVER;
        for (size_t d = 0; d < sizeof(definitions) / sizeof(definitions[0]); d++) {
            if ((opens & definitions[d].scope) && (conf_schema_scopes(schema) & definitions[d].scope))
                print_inner(json, block->name, definitions[d].name);
        }
    }
}

static void print_scope(struct json *json, const struct conf_schema *schema, enum conf_scope scope)
{
    json_pair(json, "type", "object");
    json_pair_raw(json, "additionalProperties", "false");
    json_pair_raw(json, "patternProperties", "{\"^x-\": {}}");
    json_key(json, "properties");
    json_open(json);
    json_pair_raw(json, "include",
                  "{\"description\": \"Files or patterns whose keys merge here.\", \"anyOf\": " WORDS "}");
    json_pair_raw(json, "<<", "{}");
    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++) {
            if (directives[i].scopes & scope)
                print_directive(json, &directives[i]);
        }
    }
    print_inners(json, schema, scope);
    json_close(json);
}

int conf_print_json_schema(const struct conf_schema *schema, struct buffer *out)
{
    struct json json = {.out = out};

    json_open(&json);
    json_pair(&json, "$schema", "http://json-schema.org/draft-07/schema#");
    json_pair(&json, "title", "sluice configuration");
    print_scope(&json, schema, SCOPE_MAIN);
    json_key(&json, "definitions");
    json_open(&json);
    for (size_t d = 0; d < sizeof(definitions) / sizeof(definitions[0]); d++) {
        if (!(conf_schema_scopes(schema) & definitions[d].scope))
            continue;
        json_key(&json, definitions[d].name);
        json_open(&json);
        print_scope(&json, schema, definitions[d].scope);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
    json_raw(&json, STR("\n"));
    return json.error;
}
