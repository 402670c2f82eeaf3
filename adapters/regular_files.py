"""Files that a person named, opened to be read.

* Only a regular file is read: a pipe or a device might never end, or never begin, and opening one waits for nobody.
* Whoever reads says how much is looked at: a file may be of any size.
* What can't be read is an OSError whose `strerror` is for people; whose file it was, and what to do, says whoever catches it.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

_NOT_REGULAR: Final = "it is no regular file"


@contextmanager
def opened_regular(path: Path) -> Generator[int]:
    """A regular file, as a descriptor that is open for reading. Raises OSError."""
    try:
        # Without O_NONBLOCK, opening a pipe waits for whoever would write to it.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError:
        raise OSError(errno.EINVAL, "not a path") from None
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device that is not there
            raise OSError(errno.EINVAL, _NOT_REGULAR) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, _NOT_REGULAR)
        yield handle
    finally:
        os.close(handle)


def first_bytes(path: Path, most: int) -> bytes:
    """What a regular file holds, as far as `most` bytes. Raises OSError."""
    with opened_regular(path) as handle, open(handle, "rb", closefd=False) as file:
        data = cast("bytes | None", file.read(most))
    if data is None:  # a file of the system's that calls itself regular, and would have been waited for
        raise OSError(errno.EAGAIN, "there is nothing to read in it now")
    return data
