"""perf and strace, attached to running processes."""
import contextlib
import os
import signal
import subprocess

END_TIMEOUT_S = 60


class Tracer:
    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)

    def end(self):
        """Returns the error output."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.communicate(timeout=END_TIMEOUT_S)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise


class Perf(Tracer):
    """Its events are enabled when the constructor returns, unless it has failed; see --control in perf-record(1)."""

    def __init__(self, *arguments):
        (control, self.control), (self.acknowledgements, acknowledgements) = os.pipe(), os.pipe()
        super().__init__(['perf', *arguments, '-D', '-1', f'--control=fd:{control},{acknowledgements}'], pass_fds=(control, acknowledgements))
        os.close(control)
        os.close(acknowledgements)
        with contextlib.suppress(BrokenPipeError):
            os.write(self.control, b'enable\n')
        os.read(self.acknowledgements, 16)

    def end(self):
        try:
            return super().end()
        finally:
            os.close(self.control)
            os.close(self.acknowledgements)


class Strace(Tracer):
    """Counts system calls. It is attached to all processes when the constructor returns, unless it has failed."""

    def __init__(self, pids):
        super().__init__(['strace', '-f', '-c', *(word for pid in pids for word in ('-p', str(pid)))])
        for _ in pids:
            self.process.stderr.readline()      # "strace: Process 1 attached"
