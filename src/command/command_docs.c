/*
 * `sluice docs [PORT]`: serves the HTML pages of the documentation, those of the build directory or the installed ones.
 */
#include "build_options.h"
#include "command/commands.h"
#include "command/serve.h"
#include "log/error_log.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Below the directory of the program, where the build writes the pages. */
#define DOCS_OF_BUILD "docs/site/html"
#define FIRST_PAGE    "index.html"

static bool has_pages(const char *directory)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/" FIRST_PAGE, directory) < (int)sizeof(path) && access(path, R_OK) == 0;
}

/* Returns false if the path is not known or too long. */
static bool pages_of_build(char into[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", into, PATH_MAX - 1);
    struct str program = str_of(into, length > 0 ? (size_t)length : 0);
    ssize_t slash = str_rfind(program, '/');

    if (slash < 0 || (size_t)slash + sizeof("/" DOCS_OF_BUILD) > PATH_MAX)
        return false;
    memcpy(into + slash, "/" DOCS_OF_BUILD, sizeof("/" DOCS_OF_BUILD));
    return true;
}

int command_docs(const struct options *options)
{
    char built[PATH_MAX];

    if (pages_of_build(built) && has_pages(built))
        return serve_plain(built, options->port);
    if (has_pages(SLUICE_DOCS))
        return serve_plain(SLUICE_DOCS, options->port);
    error_log_print(LOG_EMERG, "the pages of the documentation are not installed in " SLUICE_DOCS
                               ": on Debian, install the package sluice-doc; `sluice help` prints the reference");
    return EXIT_FAILURE;
}
