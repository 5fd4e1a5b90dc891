/*
 * `sluice doctor --report [FILE]`: examines the machine, runs the benchmark, and then writes the file, so
 * that a signal leaves no incomplete one.
 */
#include "doctor/doctor_publish.h"

#include "base/limits.h"
#include "base/write_all.h"
#include "doctor/doctor_markdown.h"
#include "doctor/doctor_private.h"
#include "log/error_log.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The signal that ended the benchmark; 0: none. Static, because a signal handler has no other argument. */
static volatile sig_atomic_t stop_signal;

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { STOP_SIGNALS = sizeof(stop_signals) / sizeof(stop_signals[0]) };

static void record_signal(int number)
{
    stop_signal = number;
}

/* Runs the benchmark; a signal ends it. Returns the signal, or 0. */
static int run_benchmark(const struct options *options, const struct diagnosis *diagnosis, struct benchmark *benchmark)
{
    struct sigaction record = {.sa_handler = record_signal}, ignore = {.sa_handler = SIG_IGN};
    struct sigaction before[STOP_SIGNALS], before_pipe;

    sigaction(SIGPIPE, &ignore, &before_pipe);
    for (unsigned i = 0; i < STOP_SIGNALS; i++) {
        sigaction(stop_signals[i], &record, &before[i]);
        if (before[i].sa_handler == SIG_IGN)
            sigaction(stop_signals[i], &before[i], NULL);
    }
    doctor_benchmark(options->seconds ? options->seconds : BENCHMARK_SECONDS, LIMIT_BENCHMARK_LATE_S,
                     diagnosis->support.reason[1][RECORD_AES_128_GCM] == KTLS_OK, &stop_signal, benchmark);
    for (unsigned i = 0; i < STOP_SIGNALS; i++)
        sigaction(stop_signals[i], &before[i], NULL);
    sigaction(SIGPIPE, &before_pipe, NULL);
    return stop_signal;
}

/* NULL or "-": the standard output. */
static bool is_file(const char *path)
{
    return path && strcmp(path, "-") != 0;
}

/* Finds the usual errors before the measurement. Returns false after printing one. */
static bool check_file(const char *path)
{
    char copy[PATH_MAX];
    struct stat status;
    const char *directory;

    if (lstat(path, &status) == 0) {
        error_log_print(LOG_EMERG, "\"%s\" exists: a report never replaces a file; use another name", path);
        return false;
    }
    if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy)) {
        error_log_print(LOG_EMERG, "the name of the report is too long");
        return false;
    }
    directory = dirname(copy);
    if (access(directory, W_OK | X_OK) == 0)
        return true;
    error_log_print(LOG_EMERG, "the report cannot be written to \"%s\" (%d: %s)", directory, errno, strerror(errno));
    return false;
}

static int write_file(const char *path, struct str text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error;

    if (fd < 0)
        return -errno;
    error = write_all(fd, text);
    if (close(fd) < 0 && error == 0)
        error = -errno;
    if (error < 0)
        unlink(path);
    return error;
}

/* Writes the report into `out` without words that identify the machine or its users. Returns 0 or -ENOMEM. */
static int compose_report(const struct diagnosis *diagnosis, bool works, const struct benchmark *benchmark,
                          struct buffer *out)
{
    struct private_words *words = calloc(1, sizeof(*words));
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    int error = words && stream ? 0 : -ENOMEM;

    if (error == 0)
        doctor_markdown(stream, &host_here, diagnosis, works, benchmark);
    if (stream && fclose(stream) != 0)
        error = -ENOMEM;
    if (error == 0) {
        private_words_collect(words);
        error = private_words_replace(words, str_of(text, length), out);
    }
    free(text);
    free(words);
    return error;
}

static int publish_report(const struct options *options, const struct diagnosis *diagnosis, bool works,
                          const struct benchmark *benchmark)
{
    struct buffer text = {0};
    int error = compose_report(diagnosis, works, benchmark, &text);

    if (error == 0)
        error = is_file(options->output) ? write_file(options->output, buffer_str(&text))
                                         : write_all(STDOUT_FILENO, buffer_str(&text));
    buffer_finish(&text);
    if (error < 0)
        error_log_print(LOG_EMERG, "the report cannot be written (%d: %s)", -error, strerror(-error));
    else if (is_file(options->output))
        fprintf(stderr, "The report is in %s: read it before you publish it.\n", options->output);
    return error < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int doctor_publish(const struct options *options)
{
    struct diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));
    struct benchmark *benchmark = options->no_benchmark ? NULL : calloc(1, sizeof(*benchmark));
    int status = EXIT_FAILURE, signal_number = 0;
    bool works;

    if (diagnosis && (benchmark || options->no_benchmark) &&
        (!is_file(options->output) || check_file(options->output))) {
        fprintf(stderr, "examining this machine\n");
        works = doctor_examine_machine(diagnosis);
        signal_number = benchmark ? run_benchmark(options, diagnosis, benchmark) : 0;
        if (signal_number == 0)
            status = publish_report(options, diagnosis, works, benchmark);
    }
    free(benchmark);
    free(diagnosis);
    if (signal_number) {
        fprintf(stderr, "interrupted: no report was written\n");
        raise(signal_number);
    }
    return status;
}
