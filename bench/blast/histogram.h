/*
 * Durations in buckets that grow with them (the layout of HDR histograms): 64 steps for each power of two, so a
 * duration is known to better than 1.6 % and recording one costs a few instructions. Pure: no clock is read here.
 */
#ifndef BLAST_HISTOGRAM_H
#define BLAST_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

enum { HISTOGRAM_STEP_BITS = 6, HISTOGRAM_STEPS = 1 << HISTOGRAM_STEP_BITS,
       HISTOGRAM_BUCKETS = (64 - HISTOGRAM_STEP_BITS + 1) * HISTOGRAM_STEPS };

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t total;
};

/* Counts one duration in nanoseconds. */
void histogram_record(struct histogram *histogram, uint64_t nanoseconds);

/* The bucket of a duration, and the least duration of a bucket. */
unsigned histogram_bucket(uint64_t nanoseconds);
uint64_t histogram_floor(unsigned bucket);

/* Writes the buckets that are not empty as JSON: [[least nanoseconds, count], ...]. */
void histogram_print(const struct histogram *histogram, FILE *into);

#endif
