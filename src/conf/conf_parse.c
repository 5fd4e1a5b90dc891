/*
 * Converts events to nodes by recursive descent with a capped depth. A source with syntax errors is parsed again
 * without the broken block (conf_recovery.c), so that further errors are found.
 */
#include "conf/conf_parse.h"

#include <errno.h>

static struct conf_node *node_read(struct parse *parse, unsigned depth, bool flow);

/* Reads the next event. False: parsing stops (a syntax error, a cap, or out of memory). */
static bool event_next(struct parse *parse)
{
    yaml_event_delete(&parse->event);
    if (parse->loader->stop || parse->syntax)
        return false;
    if (yaml_parser_parse(&parse->yaml, &parse->event))
        return true;
    memset(&parse->event, 0, sizeof(parse->event));
    if (parse->yaml.error == YAML_MEMORY_ERROR)
        parse_out_of_memory(parse);
    else
        parse->syntax = true;
    return false;
}

static bool depth_check(struct parse *parse, unsigned depth, struct conf_mark mark)
{
    if (depth <= LIMIT_CONF_DEPTH)
        return true;
    conf_error(parse->loader->errors, mark, STR(""), "nested more than %d levels deep", LIMIT_CONF_DEPTH);
    parse->loader->stop = true;
    return false;
}

static struct str anchor_hint(struct parse *parse, struct str name)
{
    struct str suggestion = {NULL, 0};
    size_t best = name.length / 3 + 1;
    size_t cursor = 0;
    struct table_slot *slot;

    while ((slot = table_next(&parse->anchors, &cursor))) {
        size_t distance = str_distance(name, slot->key);

        if (distance <= best && (!suggestion.data || distance < best)) {
            best = distance;
            suggestion = slot->key;
        }
    }
    if (suggestion.data)
        return conf_hint(parse->loader->errors, "did you mean *" STR_FMT "?", STR_ARG(suggestion));
    return conf_hint(parse->loader->errors, "quote it if it is text: '*" STR_FMT "'", STR_ARG(name));
}

static struct conf_node *alias_read(struct parse *parse, unsigned depth)
{
    struct conf_mark mark = mark_of(parse, parse->event.start_mark);
    struct str name = str_from((const char *)parse->event.data.alias.anchor);
    struct conf_node *node = table_get(&parse->anchors, name);

    if (!node && !parse->damaged)
        conf_error(parse->loader->errors, mark, anchor_hint(parse, name), "no anchor is named &" STR_FMT,
                   STR_ARG(name));
    if (!node)
        return NULL;
    if (!node->size) {
        conf_error(parse->loader->errors, mark, STR(""), "*" STR_FMT " is used inside its own anchor",
                   STR_ARG(name));
        return NULL;
    }
    if (!parse_count(parse, node->size, mark) || !depth_check(parse, depth + node->height, mark))
        return NULL;
    return node;
}

static void *pending_finish(struct parse *parse, size_t start)
{
    size_t length = parse->pending.length - start;
    void *memory = arena_alloc(parse->loader->arena, length);

    if (memory && length)
        memcpy(memory, parse->pending.data + start, length);
    else if (!memory)
        parse_out_of_memory(parse);
    parse->pending.length = start;
    return memory;
}

static struct conf_node *list_read(struct parse *parse, unsigned depth, bool flow)
{
    bool inner_flow = parse->event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    struct conf_node *list = parse_node(parse, CONF_LIST, flow);
    size_t start = parse->pending.length;
    size_t size = 1;

    if (!list)
        return NULL;
    tag_check(parse, list, parse->event.data.sequence_start.tag);
    parse_anchor(parse, parse->event.data.sequence_start.anchor, list);
    while (event_next(parse) && parse->event.type != YAML_SEQUENCE_END_EVENT) {
        struct conf_node *item = node_read(parse, depth + 1, inner_flow);

        if (!item || (item->absent && parse->damaged))
            continue;
        if (buffer_append(&parse->pending, str_of((const char *)&item, sizeof(struct conf_node *))) < 0) {
            parse_out_of_memory(parse);
            break;
        }
        size += item->size;
        if (item->height + 1 > list->height)
            list->height = item->height + 1;
    }
    list->count = (parse->pending.length - start) / sizeof(struct conf_node *);
    list->items = pending_finish(parse, start);
    list->size = size;
    return list->items ? list : NULL;
}

static bool duplicate_rejected(struct parse *parse, struct map_reader *reader, struct conf_node *key)
{
    const struct conf_node *first = table_get(&reader->index, key->text);

    if (first) {
        conf_error(parse->loader->errors, key->mark,
                   STR("keep one of them, or write the values as a list where one is taken"),
                   "duplicate key '" STR_FMT "'; the first one is in line %u", STR_ARG(key->text),
                   first->mark.line);
        return true;
    }
    if (table_set(&reader->index, key->text, key) < 0)
        parse_out_of_memory(parse);
    return false;
}

static void pair_add(struct parse *parse, struct map_reader *reader, struct conf_node *key,
                     struct conf_node *value)
{
    struct conf_pair pair = {key, value};

    if (buffer_append(&parse->pending, str_of((const char *)&pair, sizeof(pair))) < 0)
        parse_out_of_memory(parse);
    reader->size += 1 + value->size;
    if (value->height + 1 > reader->map->height)
        reader->map->height = value->height + 1;
}

static struct conf_node *key_read(struct parse *parse, unsigned depth, bool flow)
{
    struct conf_mark mark = mark_of(parse, parse->event.start_mark);
    bool scalar = parse->event.type == YAML_SCALAR_EVENT;
    struct conf_node *key;

    key = node_read(parse, depth, flow);
    if (parse->loader->stop || parse->syntax)
        return NULL;
    if (!scalar) {
        conf_error(parse->loader->errors, mark, STR("quote it"), "a key must be a plain word");
        return NULL;
    }
    if (key->absent) {
        conf_error(parse->loader->errors, mark, STR(""), "a key is missing before ':'");
        return NULL;
    }
    return key;
}

static void pair_read(struct parse *parse, struct map_reader *reader, unsigned depth, bool flow)
{
    bool skip = reader->skip_next;
    struct conf_node *key = key_read(parse, depth + 1, flow);
    struct conf_node *value = event_next(parse) ? node_read(parse, depth + 1, flow) : NULL;

    reader->skip_next = false;
    if (!key || !value || skip)
        return;
    if (value->absent) {
        value->mark = key->mark;
        value->key = key->text;
    }
    if (flow && flow_key_rejected(parse, reader, key, value->absent))
        return;
    if (!key->quoted && str_equal(key->text, STR("<<")))
        reader->merges = true;
    else if (duplicate_rejected(parse, reader, key) || (value->absent && parse->damaged && !flow))
        return;
    pair_add(parse, reader, key, value);
}

/* Merge keys (yaml.org/type/merge.html): the map's own keys win, then earlier merges. */
static void merge_map(struct parse *parse, struct map_reader *reader, const struct conf_node *key,
                      const struct conf_node *from)
{
    if (from->kind == CONF_LIST) {
        for (size_t i = 0; i < from->count; i++)
            merge_map(parse, reader, key, from->items[i]);
        return;
    }
    if (from->kind != CONF_MAP) {
        conf_error(parse->loader->errors, key->mark,
                   STR("write <<: *anchor, where &anchor precedes a mapping"),
                   "<< needs a mapping, or a list of mappings");
        return;
    }
    if (!parse_count(parse, from->size, key->mark))
        return;
    for (size_t i = 0; i < from->count && !parse->loader->stop; i++) {
        if (table_get(&reader->index, from->pairs[i].key->text))
            continue;
        if (table_set(&reader->index, from->pairs[i].key->text, from->pairs[i].key) < 0)
            parse_out_of_memory(parse);
        pair_add(parse, reader, from->pairs[i].key, from->pairs[i].value);
    }
}

static void merges_expand(struct parse *parse, struct map_reader *reader)
{
    size_t count = (parse->pending.length - reader->start) / sizeof(struct conf_pair);
    struct conf_pair *pairs = pending_finish(parse, reader->start);

    for (size_t i = 0; pairs && i < count && !parse->loader->stop; i++) {
        if (!pairs[i].key->quoted && str_equal(pairs[i].key->text, STR("<<")))
            merge_map(parse, reader, pairs[i].key, pairs[i].value);
        else
            pair_add(parse, reader, pairs[i].key, pairs[i].value);
    }
}

static struct conf_node *map_read(struct parse *parse, unsigned depth, bool flow)
{
    bool inner_flow = parse->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
    struct map_reader reader = {.map = parse_node(parse, CONF_MAP, flow), .start = parse->pending.length};
    struct conf_node *map = reader.map;

    if (!map)
        return NULL;
    table_init(&reader.index, false);
    tag_check(parse, map, parse->event.data.mapping_start.tag);
    parse_anchor(parse, parse->event.data.mapping_start.anchor, map);
    while (event_next(parse) && parse->event.type != YAML_MAPPING_END_EVENT)
        pair_read(parse, &reader, depth, inner_flow);
    if (reader.merges)
        merges_expand(parse, &reader);
    table_finish(&reader.index);
    map->count = (parse->pending.length - reader.start) / sizeof(struct conf_pair);
    map->pairs = pending_finish(parse, reader.start);
    map->size = reader.size + 1;
    return map->pairs ? map : NULL;
}

/* The node of the current event; NULL: the caller omits it. */
static struct conf_node *node_read(struct parse *parse, unsigned depth, bool flow)
{
    if (!depth_check(parse, depth, mark_of(parse, parse->event.start_mark)))
        return NULL;
    if (parse->event.type == YAML_ALIAS_EVENT)
        return alias_read(parse, depth);
    if (parse->event.type == YAML_SEQUENCE_START_EVENT)
        return list_read(parse, depth, flow);
    if (parse->event.type == YAML_MAPPING_START_EVENT)
        return map_read(parse, depth, flow);
    return scalar_read(parse, flow);
}

static struct conf_node *document_read(struct parse *parse)
{
    struct conf_node *root = NULL;
    struct conf_node *next;

    while (event_next(parse) && parse->event.type != YAML_STREAM_END_EVENT) {
        struct conf_mark mark = mark_of(parse, parse->event.start_mark);

        if (parse->event.type == YAML_STREAM_START_EVENT || parse->event.type == YAML_DOCUMENT_END_EVENT)
            continue;
        if (parse->event.type != YAML_DOCUMENT_START_EVENT) {
            next = node_read(parse, 1, false);
            root = root ? root : next;
        } else if (root) {
            conf_error(parse->loader->errors, mark, STR("delete the '---'; other files are read by include:"),
                       "a file holds one document, and a second one begins here");
            break;
        }
    }
    return root;
}

static struct conf_node *text_read(struct parse *parse, struct str text)
{
    size_t nodes = parse->loader->nodes;
    struct conf_node *root = NULL;

    parse->syntax = false;
    parse->last = (struct parsed_scalar){0};
    parse->cursor = (struct source_cursor){.file = parse->file};
    parse->pending.length = 0;
    table_init(&parse->anchors, false);
    yaml_parser_set_encoding(&parse->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parse->yaml, (const unsigned char *)text.data, text.length);
    root = document_read(parse);
    if (parse->syntax)
        parse->loader->nodes = nodes;
    yaml_event_delete(&parse->event);
    table_finish(&parse->anchors);
    return root;
}

static struct conf_node *empty_node(struct parse *parse)
{
    struct conf_node *node = arena_zalloc(parse->loader->arena, 1, sizeof(*node));

    if (!node) {
        parse_out_of_memory(parse);
        return NULL;
    }
    *node = (struct conf_node){
        .kind = CONF_SCALAR, .mark = {.file = parse->file}, .absent = true, .text = STR(""), .size = 1};
    return node;
}

void parse_reject_nginx(struct conf_loader *loader, struct conf_mark mark)
{
    conf_error(loader->errors, mark,
               STR("sluice import FILE translates it; here it is YAML: 'worker_processes: auto', and indentation in "
                   "place of braces"),
               "this looks like an nginx configuration");
}

struct conf_node *parse_source(struct conf_loader *loader, const struct conf_file *file)
{
    struct str text = arena_copy(loader->arena, file->text);
    struct parse parse = {.loader = loader, .file = file};
    struct conf_node *root = NULL;
    unsigned nginx = source_nginx_line(file);

    if (nginx) {
        parse_reject_nginx(loader, (struct conf_mark){file, nginx, 1});
        return NULL;
    }
    if (!text.data)
        parse_out_of_memory(&parse);
    for (int attempt = 0; attempt <= LIMIT_CONF_ERRORS && !loader->stop; attempt++) {
        unsigned known = loader->errors->count;
        bool more;

        if (!yaml_parser_initialize(&parse.yaml)) {
            parse_out_of_memory(&parse);
            break;
        }
        root = text_read(&parse, text);
        more = parse.syntax && syntax_skip(&parse, (char *)(uintptr_t)text.data, known);
        yaml_parser_delete(&parse.yaml);
        if (!more || loader->errors->count == LIMIT_CONF_ERRORS)
            break;
        parse.damaged = true;
        root = NULL;
    }
    buffer_finish(&parse.pending);
    if (!root && !loader->stop && !parse.syntax)
        root = empty_node(&parse);
    return loader->stop ? NULL : root;
}
