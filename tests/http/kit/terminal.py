"""A terminal of the type xterm-256color or vt100: runs a program in it, and interprets what it prints into cells of characters and attributes.

Only the sequences that ncurses sends to these types are known; another one is an error.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from kit import server as server_kit

SEQUENCE = re.compile(r'\x1b(?:\[([?>]?)([\d;]*)([@-~])|([()][0AB])|([=>78M]))')
IGNORED = 'hltnc'       # modes, window operations, reports
BLANK = (' ', frozenset())


class Terminal:
    """`rows` has the characters, `attributes` a set for each cell: numbers of SGR (1 bold, 7 reverse, 31 red)."""

    def __init__(self, words, columns=80, lines=24, **environment):
        kept = {name: value for name, value in os.environ.items() if name not in ('NO_COLOR', 'TERM', 'COLUMNS', 'LINES')}
        self.master, slave = pty.openpty()
        self.text = ''          # everything that was printed
        self.rest = ''          # an incomplete sequence
        self.style = set()
        self.column = self.line = 0
        self.cells = []
        self.resize(columns, lines)
        self.process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, close_fds=True, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**kept, 'TERM': 'xterm-256color', **environment})
        os.close(slave)

    def resize(self, columns, lines):
        """Changes the size; the kernel sends SIGWINCH to the program."""
        self.columns, self.lines = columns, lines
        self.cells = [[BLANK] * columns for _ in range(lines)]
        self.line, self.column = 0, 0
        self.top, self.bottom = 0, lines        # the scrolling region
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))

    def press(self, keys):
        os.write(self.master, keys.encode())

    @property
    def rows(self):
        return [''.join(character for character, _ in row).rstrip() for row in self.cells]

    def style_of(self, text):
        """The attributes of the first cell of a text on the screen."""
        for row, line in zip(self.cells, self.rows):
            if text in line:
                return row[line.index(text)][1]
        raise AssertionError(f'{text!r} is not on the screen')

    def read(self, seconds):
        """Interprets the output of this time; returns False at its end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.master, 65536)
        except OSError:     # EIO: no process has the terminal open
            return False
        self.feed(piece.decode('ascii'))
        return bool(piece)

    def wait_for(self, shown, what, seconds=20):
        """Waits until `shown` (a text, or a function of the rows) is on the screen; returns the rows."""
        deadline = time.monotonic() + seconds * server_kit.PATIENCE
        while not (any(shown in row for row in self.rows) if isinstance(shown, str) else shown(self.rows)):
            assert time.monotonic() < deadline and self.read(0.1), what + ':\n' + '\n'.join(self.rows)
        while select.select([self.master], [], [], 0.2)[0] and self.read(0):   # the rest of the screen
            pass
        return self.rows

    def wait_for_exit(self):
        """Waits for the exit status of the program."""
        deadline = time.monotonic() + 20 * server_kit.PATIENCE
        while self.read(0.1):
            assert time.monotonic() < deadline, 'the program does not end'
        os.close(self.master)
        self.master = None
        return self.process.wait(20 * server_kit.PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self.master is not None:
            os.close(self.master)

    def feed(self, text):
        self.text += text
        text = self.rest + text
        self.rest = ''
        while text:
            match = SEQUENCE.match(text) if text[0] == '\x1b' else None
            if match:
                text = text[match.end():]
                self.control(match)
            elif text[0] == '\x1b':
                assert len(text) < 16, f'unknown sequence {text[:16]!r}'
                self.rest = text
                return
            else:
                self.put(text[0])
                text = text[1:]

    def put(self, character):
        if character == '\r':
            self.column = 0
        elif character == '\b':
            self.column = max(self.column - 1, 0)
        elif character == '\n':
            if self.line + 1 == self.bottom:
                self.scroll(1)
            else:
                self.line += 1
        elif character == '\x0f':
            pass            # the normal character set
        else:
            assert ' ' <= character <= '~', f'control character {character!r}'
            if self.column >= self.columns:
                assert self.line + 1 < self.lines, 'the screen scrolls'
                self.line, self.column = self.line + 1, 0
            self.cells[self.line][self.column] = (character, frozenset(self.style))
            self.column += 1

    def control(self, match):
        private, parameters, final, _, single = match.groups()
        if single == 'M' and self.line == self.top:
            self.scroll(-1)
        elif single == 'M':
            self.line -= 1
        if not final or private or final in IGNORED:
            return
        numbers = [int(number or 0) for number in parameters.split(';')]
        action = getattr(self, ACTIONS.get(final, ''), None)
        assert action, f'unknown sequence {match.group(0)!r}'
        action(numbers)

    def move(self, numbers):
        line, column = (numbers + [1])[:2]
        self.line, self.column = min(max(line, 1), self.lines) - 1, min(max(column, 1), self.columns) - 1

    def move_line(self, numbers):
        self.move([numbers[0], self.column + 1])

    def move_column(self, numbers):
        self.move([self.line + 1, numbers[0]])

    def up(self, numbers):
        self.move([self.line + 1 - max(numbers[0], 1), self.column + 1])

    def down(self, numbers):
        self.move([self.line + 1 + max(numbers[0], 1), self.column + 1])

    def right(self, numbers):
        self.move([self.line + 1, self.column + 1 + max(numbers[0], 1)])

    def left(self, numbers):
        self.move([self.line + 1, self.column + 1 - max(numbers[0], 1)])

    def erase_line(self, numbers):
        first, last = {0: (self.column, self.columns), 1: (0, self.column + 1), 2: (0, self.columns)}[numbers[0]]
        self.cells[self.line][first:last] = [BLANK] * (last - first)

    def erase_screen(self, numbers):
        self.erase_line(numbers)
        others = {0: range(self.line + 1, self.lines), 1: range(self.line), 2: range(self.lines)}[numbers[0]]
        for line in others:
            self.cells[line] = [BLANK] * self.columns

    def erase_characters(self, numbers):
        last = min(self.column + max(numbers[0], 1), self.columns)
        self.cells[self.line][self.column:last] = [BLANK] * (last - self.column)

    def delete(self, numbers):
        row, count = self.cells[self.line], max(numbers[0], 1)
        self.cells[self.line] = (row[:self.column] + row[self.column + count:] + [BLANK] * self.columns)[:self.columns]

    def insert(self, numbers):
        row, count = self.cells[self.line], max(numbers[0], 1)
        self.cells[self.line] = (row[:self.column] + [BLANK] * count + row[self.column:])[:self.columns]

    def shift(self, first, count):
        """Moves the lines from `first` to the end of the scrolling region up, or down by -count."""
        lines = self.cells[first:self.bottom]
        blank = [[BLANK] * self.columns for _ in range(min(abs(count), len(lines)))]
        self.cells[first:self.bottom] = lines[len(blank):] + blank if count > 0 else blank + lines[:len(lines) - len(blank)]

    def scroll(self, count):
        assert (self.top, self.bottom) != (0, self.lines), 'the whole screen scrolls'
        self.shift(self.top, count)

    def scroll_up(self, numbers):
        self.scroll(max(numbers[0], 1))

    def scroll_down(self, numbers):
        self.scroll(-max(numbers[0], 1))

    def insert_lines(self, numbers):
        self.shift(self.line, -max(numbers[0], 1))

    def delete_lines(self, numbers):
        self.shift(self.line, max(numbers[0], 1))

    def repeat(self, numbers):
        for _ in range(numbers[0]):
            self.put(self.cells[self.line][self.column - 1][0])

    def scroll_region(self, numbers):
        self.top, self.bottom = (numbers[0] - 1, numbers[1]) if len(numbers) == 2 else (0, self.lines)
        self.line, self.column = 0, 0

    def attributes(self, numbers):
        for number in numbers:
            if number == 0:
                self.style.clear()
            elif 30 <= number <= 49 or number in (22, 27):
                kinds = {22: {1}, 27: {7}}.get(number, set(range(30, 40)) if number < 40 else set(range(40, 50)))
                self.style -= kinds
                self.style |= {number} if 30 <= number <= 49 and number not in (39, 49) else set()
            else:
                self.style.add(number)


ACTIONS = {'H': 'move', 'f': 'move', 'd': 'move_line', 'G': 'move_column', 'A': 'up', 'B': 'down', 'C': 'right', 'D': 'left', 'K': 'erase_line',
           'J': 'erase_screen', 'X': 'erase_characters', 'P': 'delete', '@': 'insert', 'L': 'insert_lines', 'M': 'delete_lines', 'b': 'repeat',
           'S': 'scroll_up', 'T': 'scroll_down', 'r': 'scroll_region', 'm': 'attributes'}
