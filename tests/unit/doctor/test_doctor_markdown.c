#include "doctor/doctor_markdown.h"

#include "machine.h"

#include <stdlib.h>

static const struct host host = {root, NULL};
static struct diagnosis diagnosis;
static struct benchmark benchmark;
static char *text;

static void write_report(const struct benchmark *measured)
{
    size_t length;
    FILE *out = open_memstream(&text, &length);

    machine_make();
    write_host_file("/proc/cpuinfo", "model name : A|B\n");
    write_host_file("/proc/sys/kernel/osrelease", "6.9.0\n");
    doctor_markdown(out, &host, &diagnosis, true, measured);
    fclose(out);
    machine_remove();
}

/* Returns the place of a part of the report. */
static const char *place(const char *part)
{
    const char *at = strstr(text, part);

    ck_assert_msg(at != NULL, "\"%s\" is not in\n%s", part, text);
    return at;
}

/* Every finding is in one section, also one that no section names. */
START_TEST(findings_have_sections)
{
    doctor_add(&diagnosis, "novelty", VERDICT_NOTE, "a new check");
    doctor_add(&diagnosis, "cipher", VERDICT_GOOD, "a suite");
    doctor_add(&diagnosis, "device", VERDICT_NOTE, "a <device>");
    doctor_advise(&diagnosis, "a|b");
    doctor_add(&diagnosis, "transfer", VERDICT_FAULT, "two\nlines");
    write_report(NULL);
    ck_assert(place("## Kernel TLS\n\n- ok: a suite\n- **no**: two lines\n") < place("## Encryption in user space\n"));
    place("## Network devices\n\n- note: a &lt;device> (advice: a\\|b)\n");
    place("## Other checks\n\n- note: a new check\n");
    place("Kernel TLS works on this machine.");
    ck_assert_ptr_null(strstr(text, "Benchmark"));
    ck_assert_ptr_eq(strstr(place("a new check") + 1, "a new check"), NULL);
    free(text);
}
END_TEST

static void add_sample(enum benchmark_size size, enum benchmark_path path, uint64_t cpu_ns)
{
    unsigned *count = &benchmark.counts[size][path];

    benchmark.samples[size][path][(*count)++] =
        (struct benchmark_sample){.responses = 1000, .bytes = 2000000000, .cpu_ns = cpu_ns, .elapsed_us = 500000};
}

START_TEST(figures_are_medians)
{
    struct benchmark_figure figure;

    ck_assert(!benchmark_figure(&benchmark, BENCHMARK_LARGE, BENCHMARK_PLAIN, BENCHMARK_CPU_PER_GB, &figure));
    add_sample(BENCHMARK_LARGE, BENCHMARK_PLAIN, 800000000);
    add_sample(BENCHMARK_LARGE, BENCHMARK_PLAIN, 200000000);
    ck_assert(benchmark_figure(&benchmark, BENCHMARK_LARGE, BENCHMARK_PLAIN, BENCHMARK_CPU_PER_GB, &figure));
    ck_assert_double_eq_tol(figure.median, 0.25, 1e-9);
    add_sample(BENCHMARK_LARGE, BENCHMARK_PLAIN, 400000000);
    ck_assert(benchmark_figure(&benchmark, BENCHMARK_LARGE, BENCHMARK_PLAIN, BENCHMARK_CPU_PER_GB, &figure));
    ck_assert_double_eq_tol(figure.median, 0.2, 1e-9);
    ck_assert_double_eq_tol(figure.min, 0.1, 1e-9);
    ck_assert_double_eq_tol(figure.max, 0.4, 1e-9);
    ck_assert(benchmark_figure(&benchmark, BENCHMARK_LARGE, BENCHMARK_PLAIN, BENCHMARK_GB_PER_SECOND, &figure));
    ck_assert_double_eq_tol(figure.median, 4, 1e-9);
    ck_assert(benchmark_figure(&benchmark, BENCHMARK_LARGE, BENCHMARK_PLAIN, BENCHMARK_CPU_PER_RESPONSE, &figure));
    ck_assert_double_eq_tol(figure.median, 400, 1e-9);
    ck_assert(benchmark_figure(&benchmark, BENCHMARK_LARGE, BENCHMARK_PLAIN, BENCHMARK_RESPONSES_PER_SECOND, &figure));
    ck_assert_double_eq_tol(figure.median, 2000, 1e-9);
}
END_TEST

START_TEST(samples_without_responses_or_time)
{
    struct benchmark_figure figure;

    benchmark.counts[BENCHMARK_SMALL][BENCHMARK_USER] = 1;
    for (enum benchmark_unit unit = BENCHMARK_CPU_PER_GB; unit <= BENCHMARK_RESPONSES_PER_SECOND; unit++) {
        ck_assert(benchmark_figure(&benchmark, BENCHMARK_SMALL, BENCHMARK_USER, unit, &figure));
        ck_assert_double_eq_tol(figure.median, 0, 1e-9);
    }
}
END_TEST

START_TEST(benchmark_section)
{
    benchmark.load_before = 0.5;
    add_sample(BENCHMARK_LARGE, BENCHMARK_PLAIN, 200000000);
    add_sample(BENCHMARK_LARGE, BENCHMARK_USER, 600000000);
    add_sample(BENCHMARK_SMALL, BENCHMARK_USER, 9000000);
    write_report(&benchmark);
    place("| plain HTTP | 0.100 (0.100 to 0.100) | 4.00 (4.00 to 4.00) | - | - |\n");
    place("| TLS in user space | 0.300 (0.300 to 0.300) | 4.00 (4.00 to 4.00) | 9.00 (9.00 to 9.00) | "
          "2000 (2000 to 2000) |\n");
    place("| kernel TLS | - | - | - | - |\n");
    place("Load average before: 0.50.");
    place("    | A\\|B | 6.9.0 | ");
    place(" | 0.100 | 0.300 | - | 20");
    ck_assert_ptr_null(strstr(text, "Incomplete"));
    free(text);
}
END_TEST

START_TEST(incomplete_benchmark)
{
    snprintf(benchmark.fault, sizeof(benchmark.fault), "a reason");
    write_report(&benchmark);
    place("## Benchmark\n\nIncomplete: a reason\n");
    ck_assert_ptr_null(strstr(text, "CPU seconds per GB"));
    free(text);
}
END_TEST

int main(void)
{
    return run_tests("doctor_markdown",
                     (const TTest *const[]){findings_have_sections, figures_are_medians,
                                            samples_without_responses_or_time, benchmark_section, incomplete_benchmark,
                                            NULL});
}
