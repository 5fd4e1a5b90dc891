/*
 * The live view: waits for keys and for the monitor, and draws the lines of top_screen.c.
 */
#include "top/top_view.h"

#include "base/clock.h"
#include "command/terminal.h"
#include "log/error_log.h"
#include "top/top_screen.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define ESCAPE_MS 25 /* after ESC, time for the rest of the sequence of a key */

struct view {
    struct top_monitor monitor;
    struct top_screen screen;
    enum top_list list;
    enum top_sort sort;
    bool help, ended;
    attr_t attributes[TOP_FAULT + 1]; /* by style */
    short colours[TOP_FAULT + 1];   /* colour pairs of ncurses; 0: none */
};

/* Without colours, the attributes alone distinguish the styles. */
static void choose_styles(struct view *view)
{
    const struct terminal_environment environment = {.no_color = getenv("NO_COLOR"), .term = getenv("TERM")};

    view->attributes[TOP_TITLE] = A_REVERSE;
    view->attributes[TOP_HEADING] = A_BOLD;
    view->attributes[TOP_FAULT] = A_REVERSE | A_BOLD;
    if (!terminal_colours(&environment) || start_color() == ERR || !has_colors() || use_default_colors() == ERR)
        return;
    init_pair(TOP_HEADING, COLOR_CYAN, -1);
    init_pair(TOP_FAULT, COLOR_RED, -1);
    view->colours[TOP_HEADING] = TOP_HEADING;
    view->colours[TOP_FAULT] = TOP_FAULT;
}

static void draw_screen(struct view *view)
{
    struct clock now;
    struct top_content content = {
        .monitor = &view->monitor, .list = view->list, .sort = view->sort, .help = view->help, .interactive = true};

    clock_read(&now);
    content.wall_s = clock_wall_s(&now);
    top_screen_compose(&view->screen, &content, COLS > 0 ? (unsigned)COLS : 0, LINES > 0 ? (unsigned)LINES : 0);
    erase();
    for (unsigned i = 0; i < view->screen.used; i++) {
        const struct top_line *line = &view->screen.lines[i];

        mvaddstr((int)i, 0, line->text);
        mvchgat((int)i, 0, -1, view->attributes[line->style], view->colours[line->style], NULL);
    }
    refresh();
}

static void choose_list(struct view *view, int key)
{
    static const char keys[TOP_LISTS] = {
        [TOP_LIST_LOCATIONS] = 'l', [TOP_LIST_SERVERS] = 'z', [TOP_LIST_STREAMS] = 't', [TOP_LIST_CACHES] = 'c'};

    for (enum top_list list = 0; list < TOP_LISTS; list++) {
        if (key == keys[list])
            view->list = list;
    }
}

static void apply_key(struct view *view, int key)
{
    bool was_help = view->help;

    if (key == KEY_RESIZE) {
        clearok(stdscr, TRUE); /* some terminals erase the screen at a new size, others do not */
        return;
    }
    view->help = false;
    if (key == 'q' || key == 'Q')
        view->ended = true;
    else if (was_help)
        return;
    else if (key == 's' || key == KEY_RIGHT)
        view->sort = (view->sort + 1) % TOP_SORTS;
    else if (key == KEY_LEFT)
        view->sort = (view->sort + TOP_SORTS - 1) % TOP_SORTS;
    else if (key == 'h' || key == '?')
        view->help = true;
    else
        choose_list(view, key);
}

/* Reads and applies all pressed keys. Returns true if there were any. */
static bool apply_keys(struct view *view)
{
    bool pressed = false;
    int key;

    while (!view->ended && (key = getch()) != ERR) {
        apply_key(view, key);
        pressed = true;
    }
    return pressed;
}

/* Waits for a key, or until the monitor has to continue. */
static void wait_for(struct view *view)
{
    struct pollfd waiting[] = {{STDIN_FILENO, POLLIN, 0}, {view->monitor.fetch.fd, view->monitor.fetch.events, 0}};
    uint64_t now_us = clock_monotonic_us();
    uint64_t until_us = top_monitor_until(&view->monitor);
    /* At most an hour (--interval). A signal (a new size of the terminal) ends the wait. */
    int ready = poll(waiting, 2, until_us > now_us ? (int)((until_us - now_us + 999) / 1000) : 0);

    if (ready > 0 && waiting[0].revents & (POLLHUP | POLLERR))
        view->ended = true; /* the terminal was closed */
}

static void show_view(struct view *view)
{
    choose_styles(view);
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_MS);
    draw_screen(view);
    while (!view->ended) {
        bool changed;

        wait_for(view);
        changed = apply_keys(view);
        if (top_monitor_continue(&view->monitor, clock_monotonic_us()) || changed)
            draw_screen(view);
    }
    endwin();
}

int top_view_run(const struct top_server *server, unsigned interval_s)
{
    SCREEN *terminal = NULL;
    struct view *view;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        error_log_print(LOG_EMERG, "top needs a terminal; \"sluice top --once\" prints one sample");
        return -ENOTTY;
    }
    view = calloc(1, sizeof(*view));
    terminal = view ? newterm(NULL, stdout, stdin) : NULL;
    if (!terminal) {
        error_log_print(LOG_EMERG, "%s", view ? "the type of the terminal (TERM) is not known; "
                                                "\"sluice top --once\" prints one sample"
                                              : "out of memory");
        free(view);
        return -ENOTSUP;
    }
    top_monitor_init(&view->monitor, server, interval_s);
    show_view(view);
    top_monitor_finish(&view->monitor);
    delscreen(terminal);
    free(view);
    return 0;
}
