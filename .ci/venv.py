"""Make the virtual environment from requirements.lock, unless the one that is there was made from this very lock.

* The stamp (the lock's SHA-256) is written last: an environment without it is half-made and is made anew, from nothing.
* One at a time: whoever comes second waits, and then finds the first one's work. What is started here holds the lock too, so
  that an installer that outlives this process is waited for; the operating system lets go of it when the last holder dies.
* Needs nothing but a Python that the lock has wheels for. `--this` takes the Python that runs this file also where an
  environment of another version stands.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / "lock.sha256"
PYTHON = VENV / "bin" / "python"


def works(*arguments: str) -> bool:
    """Whether the environment's Python starts and agrees."""
    try:
        return subprocess.run([PYTHON, "-c", *arguments], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def ready(digest: str, *, this: bool) -> bool:
    """Whether what stands there was made whole, from this lock and, if asked for, by this version of Python."""
    if not STAMP.is_file() or STAMP.read_text().strip() != digest:
        return False
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    check = "import sys; sys.exit(len(sys.argv) > 1 and sys.argv[1] != '%d.%d' % sys.version_info[:2])"
    return works(check, wanted) if this else works(check)


def make(digest: str, turn: int) -> None:
    """Make it from nothing. Whatever fails, no stamp is left."""
    print(f"making .venv from requirements.lock with Python {sys.version.split()[0]} (once; a minute or two)", file=sys.stderr, flush=True)
    STAMP.unlink(missing_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True, pass_fds=[turn])
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "-qq"]
    subprocess.run([*pip, "install", "--require-hashes", "--only-binary", ":all:", "-r", LOCK], check=True, pass_fds=[turn])
    fresh = STAMP.with_suffix(".new")
    fresh.write_text(digest + "\n")
    os.replace(fresh, STAMP)


def main() -> int:
    """Exit 0 if the environment is there and whole."""
    with (ROOT / ".venv.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
        if ready(digest, this="--this" in sys.argv[1:]):
            return 0
        try:
            make(digest, turn.fileno())
        except subprocess.CalledProcessError as error:
            print(f"could not make .venv (exit {error.returncode}); the words above say why. Run the same command again.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
