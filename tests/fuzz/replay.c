/*
 * Runs a fuzz target on files and on the files of directories, and on every prefix of each, for builds without
 * libFuzzer. Exits with 1 if there was no file.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LONGEST 65536

static unsigned replayed;

static void replay_file(const char *path)
{
    static uint8_t bytes[LONGEST];
    FILE *file = fopen(path, "rb");
    size_t length;

    if (!file) {
        perror(path);
        exit(1);
    }
    length = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    for (size_t prefix = 0; prefix <= length; prefix++) {
        /* A separate allocation of the exact size, so that a sanitizer detects a read past the end. */
        uint8_t *copy = malloc(prefix ? prefix : 1);

        if (!copy)
            exit(1);
        memcpy(copy, bytes, prefix);
        LLVMFuzzerTestOneInput(copy, prefix);
        free(copy);
    }
    replayed++;
}

static void replay(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;

    if (!directory) {
        replay_file(path);
        return;
    }
    while ((entry = readdir(directory))) {
        char inner[4096];

        if (entry->d_name[0] == '.')
            continue;
        if (snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) >= (int)sizeof(inner))
            exit(1);
        replay(inner);
    }
    closedir(directory);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%u inputs\n", replayed);
    return replayed ? 0 : 1;
}
