"""The environment of DBOS: made once from its lock, whose hashes are demanded; the libraries of this project stay as they are."""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "benchmarks" / "dbos.lock"
HOME = ROOT / ".venv-live" / "dbos"


def dbos_python() -> Path:
    """Its Python. What was made from another lock, or only half, is made anew."""
    python, stamp = HOME / "bin" / "python", HOME / "lock.sha256"
    digest = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != digest:
        print("making an environment from benchmarks/dbos.lock (once)", file=sys.stderr, flush=True)
        HOME.parent.mkdir(exist_ok=True)
        (HOME.parent / ".gitignore").write_text("*\n")
        subprocess.run([sys.executable, "-m", "venv", "--clear", HOME], check=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "-qq"]
        subprocess.run([*pip, "install", "--require-hashes", "--only-binary", ":all:", "-r", LOCK], check=True)
        stamp.write_text(digest)
    return python
