/*
 * The section of a report with the figures of the benchmark.
 */
#include "doctor/doctor_markdown.h"

#include <openssl/crypto.h>

/* The columns of the table. */
static const struct column {
    const char *title;
    enum benchmark_size size;
    enum benchmark_unit unit;
    int decimals;
} columns[] = {
    {"CPU seconds per GB", BENCHMARK_LARGE, BENCHMARK_CPU_PER_GB, 3},
    {"GB/s", BENCHMARK_LARGE, BENCHMARK_GB_PER_SECOND, 2},
    {"CPU us per response of 1 KiB", BENCHMARK_SMALL, BENCHMARK_CPU_PER_RESPONSE, 2},
    {"responses of 1 KiB per second", BENCHMARK_SMALL, BENCHMARK_RESPONSES_PER_SECOND, 0},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static void write_figure(FILE *out, const struct benchmark *benchmark, const struct column *column,
                         enum benchmark_path path)
{
    struct benchmark_figure figure;

    if (benchmark_figure(benchmark, column->size, path, column->unit, &figure))
        fprintf(out, " %.*f (%.*f to %.*f) |", column->decimals, figure.median, column->decimals, figure.min,
                column->decimals, figure.max);
    else
        fputs(" - |", out);
}

static void write_table(FILE *out, const struct benchmark *benchmark)
{
    fputs("| |", out);
    for (unsigned i = 0; i < COLUMNS; i++)
        fprintf(out, " %s |", columns[i].title);
    fputs("\n|---|---:|---:|---:|---:|\n", out);
    for (enum benchmark_path path = 0; path < BENCHMARK_PATHS; path++) {
        fprintf(out, "| %s |", benchmark_path_names[path]);
        for (unsigned i = 0; i < COLUMNS; i++)
            write_figure(out, benchmark, &columns[i], path);
        putc('\n', out);
    }
}

/* Writes a row of the table of bench/README.md. */
static void write_row(FILE *out, const struct host *host, const struct benchmark *benchmark)
{
    char model[256], kernel[256];

    doctor_machine_model(host, model, sizeof(model));
    doctor_machine_kernel(host, kernel, sizeof(kernel));
    fputs("\nThe row for bench/README.md:\n\n    | ", out);
    markdown_text(out, model);
    fputs(" | ", out);
    markdown_text(out, kernel);
    fputs(" | ", out);
    markdown_text(out, OpenSSL_version(OPENSSL_VERSION_STRING));
    fputs(" |", out);
    for (enum benchmark_path path = 0; path < BENCHMARK_PATHS; path++) {
        struct benchmark_figure figure;

        if (benchmark_figure(benchmark, BENCHMARK_LARGE, path, BENCHMARK_CPU_PER_GB, &figure))
            fprintf(out, " %.3f |", figure.median);
        else
            fputs(" - |", out);
    }
    putc(' ', out);
    markdown_date(out);
    fputs(" |\n", out);
}

void doctor_markdown_benchmark(FILE *out, const struct host *host, const struct benchmark *benchmark)
{
    fputs("\n## Benchmark\n\n", out);
    if (benchmark->fault[0]) {
        fputs("Incomplete: ", out);
        markdown_text(out, benchmark->fault);
        fputs("\n\n", out);
    }
    if (benchmark->counts[BENCHMARK_LARGE][BENCHMARK_PLAIN] == 0)
        return;
    fprintf(out,
            "One worker with default settings, but without a limit of requests per connection, and a client on this\n"
            "machine over loopback; TLS 1.3 with AES-128-GCM. CPU time is that of the worker, without handshakes.\n"
            "Bodies of 1 MiB over 8 connections, and of 1 KiB over 16. Median of %u rounds (smallest to largest).",
            benchmark->counts[BENCHMARK_LARGE][BENCHMARK_PLAIN]);
    if (benchmark->load_before >= 0)
        fprintf(out, " Load average before: %.2f.", benchmark->load_before);
    fputs("\n\n", out);
    write_table(out, benchmark);
    write_row(out, host, benchmark);
}
