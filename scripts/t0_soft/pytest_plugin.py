"""pytest --t0-soft: the tests run with the gfx1100 in software as their card.

A library must be loaded before the process starts.  So the first process
becomes a `t0-soft run` of the same command line, before it has read any test,
and its exit status is that of the second.
"""
import os
import sys

import pytest

import t0_soft


def pytest_addoption(parser):
    group = parser.getgroup("t0-soft", "the gfx1100 in software")
    group.addoption(
        "--t0-soft", action="store_true", default=False,
        help="run the tests with a gfx1100 in software as the card of the machine")


def _start_again(folder):
    try:
        program = t0_soft.program()
    except RuntimeError as e:
        raise pytest.UsageError(f"--t0-soft: {e}") from None
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(folder)
    os.execv(program, ["t0-soft", "run", "-q", "--", sys.executable,
                       *sys.orig_argv[1:]])


# A wrapper, and the first: later the streams are pytest's, to capture.
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config):
    if early_config.known_args_namespace.t0_soft and not t0_soft.active():
        if "T0_SOFT_ROOT" in os.environ:
            raise pytest.UsageError(
                f"--t0-soft: {sys.executable} was started with LD_PRELOAD="
                f"{os.environ.get('LD_PRELOAD')} and did not load it: wanted a "
                "Python that is linked dynamically with glibc and not set-uid, "
                "and no wrapper that clears LD_PRELOAD")
        _start_again(early_config.invocation_params.dir)
    yield


def pytest_report_header(config):
    if config.option.t0_soft:
        return f"t0-soft: {t0_soft.describe()}"
    return None
