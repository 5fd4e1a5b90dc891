/*
 * A search for the file of a request, shared by static.c (the lookups) and static_found.c (their results). Private to
 * these files.
 */
#ifndef MODULES_STATIC_STATIC_SEARCH_H
#define MODULES_STATIC_STATIC_SEARCH_H

#include "static.h"

/* Object of the current lookup. */
enum seek { SEEK_FILE, SEEK_INDEX, SEEK_DIRECTORY, SEEK_SIBLING };

struct search {
    struct file_lookup lookup;
    struct exchange *x;
    const struct static_conf *conf;
    struct str directory;
    struct str root; /* `directory` without trailing slashes */
    struct str path; /* below `directory` */
    struct str uri;  /* URI of the lookup: begins with "/" */
    enum seek seek;
    size_t index; /* index in conf->index */
    struct static_codings codings;
    unsigned sibling;         /* index in `codings` */
    struct file_entry *plain; /* entry of the plain file, or of its ENOENT, during lookups of precompressed variants */
    enum coding coding;       /* coding of the response; CODINGS: none */
    struct op digesting;
    struct file_entry *entry; /* entry being hashed */
    unsigned char digest[STATIC_DIGEST]; /* written by the helper thread, which must not write to the entry */
};

/*
 * Takes over the entry of a lookup. Returns true with the outcome of the request; false: another candidate is to be
 * looked up.
 */
bool static_found(struct search *search, struct file_entry *entry, enum outcome *out_outcome);
/* Answers without a precompressed variant, after the last of them was looked up. */
enum outcome static_respond_plain(struct search *search);
/* Releases the entry of the plain file. */
void static_release_plain(struct search *search);
/* Answers methods other than GET and HEAD. */
enum outcome static_respond_method(struct exchange *x);

#endif
