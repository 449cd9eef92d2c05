"""A Python environment with exactly the packages of a pins file, made once and kept in the user's cache.

    python3 tests/python/environment.py readers

prints the path of the environment's interpreter. Everything else goes to standard error. Tests call this
themselves, so nothing has to be prepared by hand; two calls at once are safe. Only the standard library is used.
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PINS = {
    "readers": HERE / "readers.txt",
    "spark": HERE / "spark.txt",
    "aws": HERE / "aws.txt",
    "lambda": HERE / "lambda.txt",
    "deny": HERE / "deny.txt",
    "speed": HERE / "speed.txt",
    "broker": HERE / "broker.txt",
    "events": HERE.parent.parent / "events" / "requirements.txt",
}
OLDEST_PYTHON = (3, 10)  # what PyIceberg 0.12 and DuckDB 1.5 ask for
PIP_TIMEOUT_SECONDS = 20 * 60


class EnvironmentFault(Exception):
    """What is missing on this machine, and how to get it."""


def interpreter(name):
    """Returns the interpreter of environment `name`, made now if it is not there yet."""
    if name not in PINS:
        raise EnvironmentFault(f"no environment is called {name!r}: there are {', '.join(sorted(PINS))}")
    pins = PINS[name]
    if not pins.is_file():
        raise EnvironmentFault(f"the pins of environment {name!r} are not there: {pins}")
    check_python()

    home = cache_directory() / f"{name}-{hashlib.sha256(pins.read_bytes()).hexdigest()[:16]}"
    python = home / "bin" / "python"
    if not is_complete(home):
        with lock(home):
            if not is_complete(home):
                build(name, pins, home, python)
    return python


def check_python():
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise EnvironmentFault(
            f"Python {oldest} or newer is needed, and {sys.executable} is {found}: "
            f"install a newer one and set FRAZIL_PYTHON to its path"
        )
    try:
        import ensurepip  # noqa: F401  (Debian ships venv without it)
        import venv  # noqa: F401
    except ImportError:
        raise EnvironmentFault(
            f"{sys.executable} cannot make virtual environments: apt-get install -y python3-venv"
        ) from None


def cache_directory():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    directory = pathlib.Path(base) / "frazil"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise EnvironmentFault(
            f"the cache directory {directory} cannot be made ({fault.strerror}): set XDG_CACHE_HOME to one that can"
        ) from None
    return directory


def is_complete(home):
    """Whether `home` was finished, and by a Python that is still what it was: an upgraded one breaks its links."""
    try:
        return (home / "complete").read_text() == sys.version and (home / "bin" / "python").exists()
    except OSError:
        return False


class lock:
    """Held by the process that builds `home`. The system frees it when that process dies."""

    def __init__(self, home):
        self.path = f"{home}.lock"

    def __enter__(self):
        self.file = open(self.path, "w")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another process is making {self.path.removesuffix('.lock')}, waiting for it")
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def build(name, pins, home, python):
    """An environment cannot be moved once made, so it is made in place, and a file says when it is whole."""
    started = time.monotonic()
    report(f"making the Python environment {name!r} in {home}")
    shutil.rmtree(home, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(home)], "the virtual environment could not be made")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    run(
        # The pins are the whole list: what they do not name is not installed.
        [*pip, "install", "--quiet", "--no-deps", "--requirement", str(pins)],
        f"pip could not install {pins} (is the Python package index reachable from here?)",
    )
    run([*pip, "check"], f"the packages of {pins} do not fit together: pin again from the .in file beside it")
    (home / "complete").write_text(sys.version)
    report(f"{name!r} is ready after {time.monotonic() - started:.0f} s")


def run(command, what_failed):
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=PIP_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(f"{what_failed}: no answer within {PIP_TIMEOUT_SECONDS} s") from None
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise EnvironmentFault(f"{what_failed}. `{' '.join(command)}` said:\n{tail}")


def report(message):
    print(f"environment: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: environment.py {'|'.join(sorted(PINS))}")
    try:
        print(interpreter(sys.argv[1]))
    except EnvironmentFault as fault:
        sys.exit(f"environment: {fault}")
