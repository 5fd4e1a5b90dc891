/*
 * Reads proxy_cache_path, and opens its directory and index.
 */
#include "cache/cache_conf.h"

#include "base/limits.h"
#include "io/owned_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#define HINT STR("write: proxy_cache_path: {path: /var/cache/sluice, keys_zone: \"one:10m\", max_size: 1g}")

struct row {
    struct cache_conf conf;
    struct str levels;
    struct str zone;
};

#define IN(field) offsetof(struct row, field)

static const struct directive keys[] = {
    {.name = "path", .type = DIRECTIVE_PATH, .offset = IN(conf.path), .help = "The directory of its files."},
    {.name = "levels",
     .type = DIRECTIVE_TEXT,
     .offset = IN(levels),
     .default_value = "1:2",
     .help = "The levels of subdirectories: for each of at most three levels, 1 or 2 of the last digits of a file's "
             "name. A change deletes the stored responses."},
    {.name = "keys_zone",
     .type = DIRECTIVE_TEXT,
     .offset = IN(zone),
     .help = "NAME:SIZE: the name for proxy_cache, and the memory of the index (1m holds about 11,000 responses)."},
    {.name = "max_size",
     .type = DIRECTIVE_SIZE,
     .offset = IN(conf.max_size),
     .default_value = "0",
     .help = "The total size of the files; beyond it the least recently used are deleted. 0: no limit."},
    {.name = "min_free",
     .type = DIRECTIVE_SIZE,
     .offset = IN(conf.min_free),
     .default_value = "0",
     .help = "The free space of the file system; below it the least recently used files are deleted."},
    {.name = "inactive",
     .type = DIRECTIVE_DURATION,
     .offset = IN(conf.inactive_ms),
     .default_value = "10m",
     .low = 1000,
     .help = "Entries that were not used for this time are deleted, fresh or not."},
    {.name = "manager_files",
     .type = DIRECTIVE_NUMBER,
     .offset = IN(conf.files_at_once),
     .default_value = "100",
     .low = 1,
     .high = 100000,
     .help = "The number of files that one step of loading or deleting processes."},
    {.name = "manager_threshold",
     .type = DIRECTIVE_DURATION,
     .offset = IN(conf.step_ms),
     .default_value = "200ms",
     .low = 1,
     .help = "The maximum duration of a step of loading or deleting."},
    {.name = "manager_sleep",
     .type = DIRECTIVE_DURATION,
     .offset = IN(conf.pause_ms),
     .default_value = "50ms",
     .low = 1,
     .help = "The pause between two steps."},
    {0},
};

static int report_cache_error(struct conf_reader *reader, const struct conf_node *node, const char *what)
{
    conf_error(reader->errors, node->mark, HINT, "%s", what);
    return -EINVAL;
}

static bool read_levels(struct str text, unsigned levels[CACHE_LEVELS])
{
    unsigned count = 0;

    while (text.data) {
        struct str digit = str_cut(&text, ':');

        if (count == CACHE_LEVELS || digit.length != 1 || digit.data[0] < '1' || digit.data[0] > '2')
            return false;
        levels[count++] = (unsigned)(digit.data[0] - '0');
    }
    return count > 0;
}

static int read_zone(struct conf_reader *reader, const struct conf_node *node, struct row *row)
{
    struct str size = row->zone;
    struct conf_node word;
    int error;

    row->conf.name = str_cut(&size, ':');
    word = conf_word_node(conf_map_get(node, STR("keys_zone")), size);
    if (str_empty(row->conf.name) || str_empty(size))
        return report_cache_error(reader, &word, "keys_zone takes NAME:SIZE");
    error = conf_read_size(reader, &word, &row->conf.zone_size);
    if (error == 0 && (row->conf.zone_size < LIMIT_CACHE_ZONE_MIN || row->conf.zone_size > LIMIT_CACHE_ZONE_MAX))
        return report_cache_error(reader, &word, "keys_zone: the size must be from 32k to 64g");
    if (error == 0 && caches_find(reader->caches, row->conf.name))
        return report_cache_error(reader, &word, "keys_zone: the name is already used by another cache");
    return error;
}

/* Reads the path. caches_open rejects two different paths of one directory. */
static int read_path(struct conf_reader *reader, const struct conf_node *node, struct cache_conf *conf)
{
    const struct caches *caches = reader->caches;
    struct str path = conf->path;

    while (path.length > 1 && str_ends(path, STR("/")))
        path.length--;
    for (size_t i = 0; i < caches->count; i++) {
        if (str_equal(caches->items[i]->path, path))
            return report_cache_error(reader, conf_map_get(node, STR("path")),
                                      "path: the directory is already used by another cache");
    }
    conf->path = arena_copy(reader->arena, path);
    return conf->path.data ? 0 : -ENOMEM;
}

static int register_cache(struct conf_reader *reader, struct cache_conf *conf)
{
    struct caches *caches = reader->caches;
    struct cache_conf **grown = arena_zalloc(reader->arena, caches->count + 1, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    for (size_t i = 0; i < caches->count; i++)
        grown[i] = caches->items[i];
    conf->index = (unsigned)caches->count;
    grown[caches->count++] = conf;
    caches->items = grown;
    return 0;
}

int caches_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct row *row = arena_zalloc(reader->arena, 1, sizeof(*row));
    struct cache_conf **into = out;
    int error;

    if (!row)
        return -ENOMEM;
    if (node->kind != CONF_MAP)
        return report_cache_error(reader, node, "proxy_cache_path takes a mapping");
    error = conf_read_block(reader, node, keys, row);
    if (error < 0)
        return error;
    if (str_empty(row->conf.path) || str_empty(row->zone))
        return report_cache_error(reader, node, "proxy_cache_path requires path and keys_zone");
    if (!read_levels(row->levels, row->conf.directory.levels))
        return report_cache_error(reader, node,
                                  "levels takes one to three digits, each 1 or 2, separated by colons");
    row->conf.directory.fd = -1;
    if (row->conf.max_size == 0)
        row->conf.max_size = UINT64_MAX;
    error = read_path(reader, node, &row->conf);
    if (error == 0)
        error = read_zone(reader, node, row);
    if (error == 0)
        error = register_cache(reader, &row->conf);
    if (error == 0)
        *into = &row->conf;
    return error;
}

const struct cache_conf *caches_find(const struct caches *caches, struct str name)
{
    for (size_t i = 0; i < caches->count; i++) {
        if (str_equal(caches->items[i]->name, name))
            return caches->items[i];
    }
    return NULL;
}

static int open_directory(struct cache_conf *conf, uid_t user, gid_t group)
{
    const char *path = conf->path.data; /* terminated: a path of the configuration */
    int error = owned_directory_create(AT_FDCWD, path, 0700, user, group);

    if (error < 0)
        return error;
    conf->directory.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return conf->directory.fd < 0 ? -errno : 0;
}

/* True if an earlier cache has the same directory: each would index and delete the files of the other. */
static bool is_used_already(const struct caches *caches, const struct cache_conf *conf)
{
    struct stat own, other;

    for (size_t i = 0; i < conf->index; i++) {
        if (fstat(conf->directory.fd, &own) == 0 && fstat(caches->items[i]->directory.fd, &other) == 0 &&
            own.st_dev == other.st_dev && own.st_ino == other.st_ino)
            return true;
    }
    return false;
}

/* Returns the index of the previous configuration if it is compatible; else NULL. */
static struct cache_zone *share_zone(const struct caches *before, const struct cache_conf *conf)
{
    for (size_t i = 0; before && i < before->count; i++) {
        const struct cache_conf *other = before->items[i];

        if (other->zone && str_equal(other->path, conf->path) && other->zone_size == conf->zone_size &&
            memcmp(other->directory.levels, conf->directory.levels, sizeof(conf->directory.levels)) == 0)
            return cache_zone_share(other->zone);
    }
    return NULL;
}

int caches_open(struct caches *caches, const struct caches *before, uid_t user, gid_t group, struct log *log)
{
    struct clock now;

    clock_read(&now);
    for (size_t i = 0; i < caches->count; i++) {
        struct cache_conf *conf = caches->items[i];
        int error = open_directory(conf, user, group);

        if (error < 0) {
            log_write(log, LOG_EMERG, "proxy_cache_path: directory \"" STR_FMT "\" cannot be opened (%d: %s)",
                      STR_ARG(conf->path), -error, strerror(-error));
            return error;
        }
        if (is_used_already(caches, conf)) {
            log_write(log, LOG_EMERG, "proxy_cache_path: directory \"" STR_FMT "\" is already used by another cache",
                      STR_ARG(conf->path));
            return -EEXIST;
        }
        conf->zone = share_zone(before, conf);
        if (!conf->zone)
            conf->zone = cache_zone_create((size_t)conf->zone_size, (uint64_t)now.wall_ms * 1000);
        if (!conf->zone) {
            log_write(log, LOG_EMERG, "proxy_cache_path: no memory for keys_zone \"" STR_FMT "\"", STR_ARG(conf->name));
            return -ENOMEM;
        }
    }
    return 0;
}

void caches_close(struct caches *caches)
{
    for (size_t i = 0; i < caches->count; i++) {
        struct cache_conf *conf = caches->items[i];

        if (conf->directory.fd >= 0)
            close(conf->directory.fd);
        conf->directory.fd = -1;
        cache_zone_destroy(conf->zone);
        conf->zone = NULL;
    }
}

void caches_set_log(const struct caches *caches, struct log *log)
{
    for (size_t i = 0; i < caches->count; i++) {
        if (caches->items[i]->zone)
            cache_zone_set_log(caches->items[i]->zone, log, caches->items[i]->name);
    }
}

void caches_abandon(const struct caches *caches, unsigned worker)
{
    for (size_t i = 0; i < caches->count; i++) {
        if (caches->items[i]->zone)
            cache_zone_abandon(caches->items[i]->zone, worker);
    }
}
