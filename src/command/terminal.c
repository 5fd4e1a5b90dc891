/*
 * Runs the pager and adds the colours.
 */
#include "command/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOLD   "\033[1m"
#define COLOUR "\033[36m"
#define PLAIN  "\033[m"

#define DEFAULT_PAGER   "less -FRX"
#define FIND_DEFAULT    "command -v less >/dev/null || exit 127; exec less -FRX" /* without the shell's message */
#define EXIT_NO_PROGRAM 127             /* of sh, for a command that it does not find */

static bool is_set(const char *value)
{
    return value && *value;
}

static bool has_control_sequences(const struct terminal_environment *environment)
{
    return is_set(environment->term) && strcmp(environment->term, "dumb") != 0;
}

bool terminal_colours(const struct terminal_environment *environment)
{
    return has_control_sequences(environment) && !is_set(environment->no_color);
}

const char *terminal_pager(const struct terminal_environment *environment)
{
    const char *pager = environment->sluice_pager;

    if (!pager)
        pager = environment->pager;
    if (!pager)
        pager = DEFAULT_PAGER;
    return has_control_sequences(environment) && *pager && strcmp(pager, "cat") != 0 ? pager : NULL;
}

/* Returns the length of the label of "  where     a location": a word, followed by two spaces. 0: none. */
static size_t label_length(struct str line)
{
    size_t length = 0;

    if (!str_starts(line, STR("  ")))
        return 0;
    line = str_skip(line, 2);
    while (length < line.length && line.data[length] >= 'a' && line.data[length] <= 'z')
        length++;
    return length > 0 && str_starts(str_skip(line, length), STR("  ")) ? length : 0;
}

static int highlight_line(struct str line, struct buffer *out)
{
    size_t label = label_length(line);
    ssize_t colon = str_search(line, STR(": "));
    size_t bold = colon < 0 ? line.length : (size_t)colon;

    if (label > 0)
        return buffer_printf(out, "  " COLOUR STR_FMT PLAIN STR_FMT "\n", STR_ARG(str_slice(line, 2, 2 + label)),
                             STR_ARG(str_skip(line, 2 + label)));
    if (line.length == 0 || line.data[0] == ' ')
        return buffer_printf(out, STR_FMT "\n", STR_ARG(line));
    return buffer_printf(out, BOLD STR_FMT PLAIN STR_FMT "\n", STR_ARG(str_slice(line, 0, bold)),
                         STR_ARG(str_skip(line, bold)));
}

int terminal_highlight(struct str text, struct buffer *out)
{
    int error = 0;

    while (text.length > 0 && error == 0)
        error = highlight_line(str_cut(&text, '\n'), out);
    return error;
}

/* The pager gets the default actions of the signals that this process ignores. Returns 0 or -errno. */
static int pager_spawn(const char *command, int input, pid_t *out_child)
{
    const char *const arguments[] = {"sh", "-c", command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    int error = posix_spawn_file_actions_init(&actions);

    if (error != 0)
        return -error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGPIPE);
        posix_spawnattr_setsigdefault(&attributes, &signals);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        if (error == 0)
            error = posix_spawn(out_child, "/bin/sh", &actions, &attributes, (char *const *)arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

/* Returns the exit status of the process; 0 after a signal. */
static int wait_for_exit(pid_t child)
{
    int status;

    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return 0;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* Writes the text, which the pager may leave unread. Closes the descriptor. */
static void write_pipe(int fd, struct str text)
{
    FILE *stream = fdopen(fd, "w");

    if (!stream) {
        close(fd);
        return;
    }
    fwrite(text.data, 1, text.length, stream);
    fclose(stream);
}

/* Returns false if the pager cannot be run. */
static bool print_by_pager(const char *pager, struct str text)
{
    int ends[2];
    pid_t child;
    int error;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    setenv("LESS", "FRX", 0); /* for PAGER=less */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* the pager handles it */
    error = pager_spawn(strcmp(pager, DEFAULT_PAGER) == 0 ? FIND_DEFAULT : pager, ends[0], &child);
    close(ends[0]);
    if (error < 0) {
        close(ends[1]);
        return false;
    }
    write_pipe(ends[1], text);
    return wait_for_exit(child) != EXIT_NO_PROGRAM;
}

static int write_out(struct str text)
{
    return fwrite(text.data, 1, text.length, stdout) == text.length && fflush(stdout) == 0 ? 0 : -EIO;
}

static int print_on_terminal(const struct terminal_environment *environment, struct str text)
{
    const char *pager = terminal_pager(environment);
    struct buffer coloured = {0};
    int result = 0;

    if (terminal_colours(environment)) {
        result = terminal_highlight(text, &coloured);
        text = buffer_str(&coloured);
    }
    if (result == 0 && (!pager || !print_by_pager(pager, text)))
        result = write_out(text);
    buffer_finish(&coloured);
    return result;
}

int terminal_print(struct str text)
{
    const struct terminal_environment environment = {.sluice_pager = getenv("SLUICE_PAGER"),
                                                     .pager = getenv("PAGER"),
                                                     .no_color = getenv("NO_COLOR"),
                                                     .term = getenv("TERM")};

    return isatty(STDOUT_FILENO) ? print_on_terminal(&environment, text) : write_out(text);
}
