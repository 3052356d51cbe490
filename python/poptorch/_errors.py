"""The exception classes of this package.

`Error` is what PopTorch's users catch. `RecoverableError` and `UnrecoverableError` belong to faults of a chip and of its
driver: they exist so that scripts may name them, and are never raised here, where there is no chip.
"""


class Error(Exception):
    """A model, an option or a call that cannot be carried out.

    `type` is a short word for the kind of error, `message` the text alone, `location` where it came from (may be empty).
    """

    def __init__(self, message="", type="poptorch_py_error", location=""):  # noqa: A002 - the public name
        super().__init__(message)
        self.message = str(message)
        self.type = type
        self.location = location

    def __str__(self):
        return f"'{self.type}': {self.message}"

    def __reduce__(self):
        return self.__class__, (self.message, self.type, self.location)


class RecoverableError(Error):
    """A fault that a reset of the device would mend (never raised here)."""

    def __init__(self, message="", type="poplar_recoverable_runtime_error", location="", recovery_action=""):  # noqa: A002
        super().__init__(message, type, location)
        self.recovery_action = recovery_action

    def __reduce__(self):
        return self.__class__, (self.message, self.type, self.location, self.recovery_action)


class UnrecoverableError(Error):
    """A fault of the device that no reset mends (never raised here)."""


class ConfigFileError(Exception):
    """A file of options (`Options.loadFromFile`) that cannot be read as such: names the file and the line."""
