"""The progress display: a bar by rich if rich is installed and the output is a terminal, otherwise lines."""
import sys
import time


class Lines:
    """Prints at most one line every ten seconds."""

    def __init__(self):
        self.total, self.done, self.last_output = 0, 0, 0.0

    def begin(self, title, total):
        self.total, self.done = total, 0
        print(f'{title}: {total} measurements', flush=True)

    def step(self, text, count=1):
        self.done += count
        if time.monotonic() - self.last_output >= 10:
            self.last_output = time.monotonic()
            print(f'  {self.done}/{self.total} {text}', flush=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Bar:
    """A progress bar for terminals."""

    def __init__(self, rich_progress):
        self.bar = rich_progress.Progress(rich_progress.TextColumn('{task.fields[title]}'), rich_progress.BarColumn(),
                                          rich_progress.MofNCompleteColumn(), rich_progress.TimeRemainingColumn(),
                                          rich_progress.TextColumn('{task.description}'))
        self.task = None

    def begin(self, title, total):
        if self.task is not None:
            self.bar.update(self.task, completed=self.bar.tasks[self.task].total, description='done')
        self.task = self.bar.add_task('', total=total, title=title)

    def step(self, text, count=1):
        self.bar.update(self.task, advance=count, description=text)

    def __enter__(self):
        self.bar.start()
        return self

    def __exit__(self, *_):
        if self.task is not None:
            self.bar.update(self.task, description='')
        self.bar.stop()


def make():
    if not sys.stdout.isatty():
        return Lines()
    try:
        from rich import progress
    except ImportError:
        return Lines()
    return Bar(progress)
