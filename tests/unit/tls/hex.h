/* Parses hexadecimal text; blanks are permitted. */
#ifndef TEST_HEX_H
#define TEST_HEX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static inline size_t from_hex(const char *text, uint8_t *into)
{
    size_t length = 0;
    unsigned byte;
    int used;

    while (sscanf(text, " %2x%n", &byte, &used) == 1) {
        into[length++] = (uint8_t)byte;
        text += used;
    }
    return length;
}

#endif
