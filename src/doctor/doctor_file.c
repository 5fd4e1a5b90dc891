/*
 * Reads files of /proc, /sys and the kernel's modules below the root directory of a struct host.
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool host_line(const struct host *host, const char *path, const char *start, char *into, size_t size)
{
    char name[PATH_MAX];
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *file;

    snprintf(name, sizeof(name), "%s%s", host->root, path);
    into[0] = '\0';
    file = fopen(name, "re");
    while (file && !found && getline(&line, &room, file) >= 0) {
        found = strncmp(line, start, strlen(start)) == 0;
        if (found) {
            struct str rest = str_trim(str_from(line + strlen(start)));

            if (str_ends(rest, STR("\n")))
                rest.length--;
            snprintf(into, size, STR_FMT, STR_ARG(str_trim(rest)));
        }
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

long long host_number(const struct host *host, const char *path, long long default_value)
{
    char text[64];
    char *end = text;
    long long number = host_line(host, path, "", text, sizeof(text)) ? strtoll(text, &end, 10) : 0;

    return end == text ? default_value : number;
}

bool host_has(const struct host *host, const char *path, int access_mode)
{
    char name[PATH_MAX];

    snprintf(name, sizeof(name), "%s%s", host->root, path);
    return access(name, access_mode) == 0;
}
