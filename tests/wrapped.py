"""Programs of a cross-build, which this machine cannot run: `meson test` passes the command that runs them, `exe_wrapper` of the cross
file, in MESON_EXE_WRAPPER, to tests that have the target of a program among their arguments.
"""
import os
import pathlib
import shlex


def runnable(program, folder):
    """The absolute path of the program; in a cross-build, that of a script of the same name in `folder` that runs it."""
    wrapper = os.environ.get('MESON_EXE_WRAPPER')
    program = pathlib.Path(program).resolve()
    if not wrapper:
        return str(program)
    script = pathlib.Path(folder) / program.name
    script.write_text(f'#!/bin/sh\nexec {wrapper} {shlex.quote(str(program))} "$@"\n', encoding='utf-8')
    script.chmod(0o755)
    return str(script)
