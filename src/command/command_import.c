/*
 * `sluice import`: converts nginx's configuration to YAML. The result is loaded like any other configuration;
 * directives that the loader rejects are left out and reported, until the rest loads.
 */
#include "import/import.h"

#include "base/limits.h"
#include "command/commands.h"
#include "log/error_log.h"
#include "site/configuration.h"
#include "site/core.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The result of one load. */
struct loader_round {
    struct import *import;
    unsigned faults;
    bool changed; /* a directive was left out: the rest is loaded again */
    bool has_foreign_error; /* the loader reported an error that no imported directive caused */
    int error;
};

static void collect_fault(struct loader_round *loader_round, const struct conf_error *fault)
{
    char why[1024];
    int length = snprintf(why, sizeof(why), STR_FMT "%s" STR_FMT, STR_ARG(fault->message),
                          str_empty(fault->hint) ? "" : ": ", STR_ARG(fault->hint));
    int result;

    if (length < 0 || (size_t)length >= sizeof(why))
        length = sizeof(why) - 1;
    result = fault->mark.file ? import_reject(loader_round->import, fault->mark.line, str_of(why, (size_t)length))
                              : -ENOENT;
    loader_round->faults++;
    loader_round->changed |= result == 1;
    loader_round->has_foreign_error |= result == -ENOENT;
    if (result == -ENOMEM)
        loader_round->error = result;
}

static void collect_faults(void *owner, const struct configuration *configuration, const struct conf_errors *errors)
{
    for (unsigned i = 0; i < errors->count; i++) {
        if (!errors->items[i].warning)
            collect_fault(owner, &errors->items[i]);
    }
}

/* Prints YAML that loads into `out`, and the last load's diagnostics into `diagnostics`. */
static int print_loadable(struct import *import, bool report, struct buffer *out, struct buffer *diagnostics)
{
    struct log log = {0};
    struct loader_round loader_round = {.import = import, .changed = true};

    for (unsigned round = 0; loader_round.changed && round < LIMIT_IMPORT_ROUNDS && loader_round.error == 0; round++) {
        struct configuration_source source = {.test_only = true, .report = collect_faults, .owner = &loader_round};

        buffer_consume(out, out->length);
        buffer_consume(diagnostics, diagnostics->length);
        loader_round.error = import_print(import, false, out);
        source.text = buffer_str(out);
        loader_round.changed = loader_round.has_foreign_error = false;
        if (loader_round.error == 0 && !import_has_server(import))
            return -ENODATA;
        if (loader_round.error == 0)
            configuration_destroy(configuration_load(&source, &log, diagnostics));
    }
    if (loader_round.error == 0 && report) {
        buffer_consume(out, out->length);
        loader_round.error = import_print(import, true, out);
    }
    if (loader_round.error == 0 && (loader_round.has_foreign_error || loader_round.changed))
        loader_round.error = -EBADMSG;
    return loader_round.error;
}

static int write_result(const struct options *options, const struct buffer *text)
{
    FILE *stream = options->output ? fopen(options->output, "we") : stdout;
    bool good;

    if (!stream) {
        error_log_print(LOG_EMERG, "open() \"%s\" failed (%d: %s)", options->output, errno, strerror(errno));
        return -EIO;
    }
    good = fwrite(text->data, 1, text->length, stream) == text->length;
    good = fflush(stream) == 0 && good;
    if (options->output && fclose(stream) != 0)
        good = false;
    if (!good)
        error_log_print(LOG_EMERG, "\"%s\" could not be written",
                        options->output ? options->output : "standard output");
    return good ? 0 : -EIO;
}

/* Returns the absolute path, because the result may be stored in another directory. */
static struct str absolute_path(struct arena *arena, const char *path)
{
    char directory[PATH_MAX];

    if (!path || path[0] == '/')
        return str_from(path);
    if (!getcwd(directory, sizeof(directory)))
        return (struct str){NULL, 0};
    return arena_printf(arena, "%s/%s", directory, path);
}

static int report_losses(const struct import *import, const struct buffer *diagnostics, int error)
{
    struct buffer list = {0};

    if (import_list(import, "", &list) < 0)
        error = -ENOMEM;
    if (list.length)
        fprintf(stderr, "%.*s", (int)list.length, list.data);
    buffer_finish(&list);
    if (error == -ENODATA)
        fprintf(stderr, "sluice: no server of the nginx configuration could be carried over, so no file is written\n");
    if (error == -EBADMSG)
        fprintf(stderr, "%.*ssluice: the converted configuration does not load\n",
                (int)diagnostics->length, diagnostics->data ? diagnostics->data : "");
    if (error < 0)
        return EXIT_FAILURE;
    return import_count(import, IMPORT_OMITTED) + import_count(import, IMPORT_CHANGED) ? 2 : EXIT_SUCCESS;
}

static int import_file(const struct options *options, struct arena *arena)
{
    struct import_source source = {.path = absolute_path(arena, options->input),
                                   .prefix = absolute_path(arena, options->prefix),
                                   .files = &nginx_files_of_system,
                                   .schema = configuration_schema(),
                                   .media_type = core_type_built_in};
    struct nginx_fault fault = {.message = STR("out of memory")};
    struct buffer text = {0};
    struct buffer diagnostics = {0};
    struct import *import;
    int status;
    int error = import_read(arena, &source, &import, &fault);

    if (error < 0) {
        fprintf(stderr, STR_FMT ":%u: error: " STR_FMT "\n", STR_ARG(fault.place.file), fault.place.line,
                STR_ARG(fault.message));
        return EXIT_FAILURE;
    }
    error = print_loadable(import, options->report, &text, &diagnostics);
    if (text.length && error != -ENODATA && write_result(options, &text) < 0)
        error = -EIO;
    status = report_losses(import, &diagnostics, error);
    buffer_finish(&text);
    buffer_finish(&diagnostics);
    return status;
}

int command_import(const struct options *options)
{
    struct arena arena;
    int status;

    if (!options->input) {
        error_log_print(LOG_EMERG, "import takes nginx's main file: sluice import /etc/nginx/nginx.conf");
        return EXIT_FAILURE;
    }
    arena_init(&arena, NULL, 0);
    status = import_file(options, &arena);
    arena_reset(&arena);
    return status;
}
