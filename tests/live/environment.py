"""Environments of their own for the servers that the tests start: `.venv-live/NAME`, made from `NAME.lock`.

Each is made once, and again whenever its lock or the Python changes. The stamp is written last: without it what is there is half-made.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PLACE = HERE.parents[1] / ".venv-live"
STARTS = 3
"""How often a server is started on another port: a free one may be taken by another process before the server has it."""


def python_of(name: str) -> Path:
    """The Python of an environment, which is made if it is missing or of another lock."""
    PLACE.mkdir(exist_ok=True)
    (PLACE / ".gitignore").write_text("*\n")
    home, lock = PLACE / name, HERE / f"{name}.lock"
    stamp, wanted = home / "lock.sha256", hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
    with (PLACE / f"{name}.turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not stamp.is_file() or stamp.read_text() != wanted:
            shutil.rmtree(home, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            pip = [home / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-qq"]
            subprocess.run([*pip, "install", "--require-hashes", "--only-binary", ":all:", "-r", lock], check=True)
            stamp.write_text(wanted)
    return home / "bin" / "python"
