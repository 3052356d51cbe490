"""`poptorch.profiling`: channels of trace points, which go nowhere here."""

import contextlib


class Channel:
    """A channel of trace points. There is no PopVision trace to write them to: they have no effect."""

    def __init__(self, name):
        self.name = name

    def instrument(self, obj, *methods):
        """The object as it is."""
        return obj

    def tracepoint(self, name):
        """A context without effect."""
        return contextlib.nullcontext()
