"""The one family of errors: a closed list of codes, each with a sentence, a hint and named facts.

An error is raised where the fact is known and turned into an answer by a surface. The sentence and the hint may reach
a model or another program, so they hold no path, no SQL and no engine wording; `facts` are for the person who runs
keepwell.
"""

from typing import ClassVar, Final


class KeepwellError(Exception):
    """Something asked of keepwell could not be done.

    `sentence` says what is wrong, `hint` what to do next (may be empty), `facts` name details such as a file's path.
    """

    code: ClassVar[str] = "internal"

    def __init__(self, sentence: str, *, hint: str = "", **facts: object) -> None:
        super().__init__(sentence)
        self.sentence: Final = sentence
        self.hint: Final = hint
        self.facts: Final = facts

    @property
    def line(self) -> str:
        """The whole error as one line: code, sentence, hint."""
        text = f"{self.code}: {self.sentence}" + (f" {self.hint}" if self.hint else "")
        return " ".join(text.split())


class Invalid(KeepwellError):
    """An argument, a setting or a document breaks a rule; the sentence names it and the limit."""

    code = "invalid"


class NotFound(KeepwellError):
    """What was named does not exist, or is not visible from this launch."""

    code = "not_found"


class Conflict(KeepwellError):
    """What was asked does not fit the present state; reading again shows the present one."""

    code = "conflict"


class Denied(KeepwellError):
    """The launch, or the operating system, does not permit it; the hint names the setting that would."""

    code = "denied"


class Busy(KeepwellError):
    """Another process holds the store; nothing was changed and the same call may be made again."""

    code = "busy"


class Unsupported(KeepwellError):
    """A newer, foreign or unfit thing that this version refuses to touch."""

    code = "unsupported"


class Corrupt(KeepwellError):
    """Stored data is damaged; nothing was changed."""

    code = "corrupt"


class Internal(KeepwellError):
    """A fault of keepwell itself."""

    code = "internal"


FAMILY: Final = (Invalid, NotFound, Conflict, Denied, Busy, Unsupported, Corrupt, Internal)
CODES: Final = tuple(error.code for error in FAMILY)
