"""The list of architectures: NAME -> a function that gives a module with random weights and a tuple of inputs."""

from . import convolutional, forecasting, language, scientific, tokens, vision

TABLES = [("vision", vision.TABLE), ("convolutional", convolutional.TABLE), ("tokens", tokens.TABLE),
          ("language", language.TABLE), ("scientific", scientific.TABLE), ("forecasting", forecasting.TABLE)]


def entries():
    """(name, family, builder) of every architecture, in the order of the page."""
    return [(name, family, builder) for family, table in TABLES for name, builder in table.items()]
