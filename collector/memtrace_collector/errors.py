"""What can go wrong, sorted by what the caller does next.

    MemtraceError
    ├── WrongUseError               change the call                             exit 2
    │   ├── ConfigError                 change an argument, a variable or the file
    │   ├── NotFoundError               name something that exists
    │   ├── ConflictError               look at what it is by now, then call again
    │   └── NotInThisVersionError       use another way, or a later release
    ├── UnreachableError            start it, wait, then call again             exit 3
    │   └── StoreInUseError             end or ask the process that owns the folder
    └── DamagedError                repair or replace the data                  exit 4

Nothing here ends the process: ``cli`` maps ``exit_code``. A finding (exit 1) is a result, not
an error.
"""

from __future__ import annotations

from typing import ClassVar

EXIT_DONE = 0
EXIT_FINDING = 1
EXIT_WRONG_USE = 2
EXIT_UNREACHABLE = 3
EXIT_DAMAGED = 4


class MemtraceError(Exception):
    """Base of every error that is told to the user: what, where, what to do."""

    exit_code: ClassVar[int] = EXIT_FINDING


class WrongUseError(MemtraceError):
    """The call cannot be carried out as it stands."""

    exit_code = EXIT_WRONG_USE


class ConfigError(WrongUseError):
    """A setting is missing, malformed or contradicts another."""


class NotFoundError(WrongUseError):
    """The graph, answer, record or file that was named does not exist."""


class ConflictError(WrongUseError):
    """Somebody else changed it since the caller looked."""


class NotInThisVersionError(WrongUseError):
    """Described in the documentation, and not built yet."""


class UnreachableError(MemtraceError):
    """A component that is needed does not answer."""

    exit_code = EXIT_UNREACHABLE


class StoreInUseError(UnreachableError):
    """Another process owns the data folder and offers no way in."""


class DamagedError(MemtraceError):
    """Data cannot be read as what it should be."""

    exit_code = EXIT_DAMAGED
