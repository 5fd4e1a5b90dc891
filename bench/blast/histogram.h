/*
 * Histogram of durations in the layout of HDR histograms: 64 buckets for each power of two, so that the error
 * of a duration is below 1.6 %, and recording takes a few instructions. Without I/O or clock.
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

/* The bucket of a duration, and the lower bound of a bucket. */
unsigned histogram_bucket(uint64_t nanoseconds);
uint64_t histogram_floor(unsigned bucket);

/* Writes the non-empty buckets as JSON: [[lower bound in nanoseconds, count], ...]. */
void histogram_print(const struct histogram *histogram, FILE *into);

#endif
