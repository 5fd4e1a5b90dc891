/*
 * Words that identify a machine or its users, and that a report for publication therefore does not contain: host name,
 * user, home directory, addresses, names of network devices. sluice writes none of these words itself, but the kernel
 * and libraries supply parts of the texts of a report.
 */
#ifndef DOCTOR_DOCTOR_PRIVATE_H
#define DOCTOR_DOCTOR_PRIVATE_H

#include "base/buffer.h"

#define PRIVATE_WORDS 256

struct private_words {
    struct private_word {
        char text[256];
        char replacement[24];
    } words[PRIVATE_WORDS];         /* the longest first, after private_words_collect */
    unsigned count;
    unsigned devices;
};

/* Adds a word, unless it is shorter than two bytes, known, or the table is full. */
void private_words_add(struct private_words *words, const char *text, const char *replacement);
/* Adds the words of this machine, and sorts them. */
void private_words_collect(struct private_words *words);
/*
 * Appends `text` with each of the words replaced where no letter or digit precedes or follows it. The comparison is
 * exact. A word that is also part of a fixed text, such as a host named "kernel", is replaced there, too. Returns 0 or
 * -ENOMEM.
 */
MUST_CHECK int private_words_replace(const struct private_words *words, struct str text, struct buffer *out);

#endif
