"""PopART's enumerations: what scripts write into options."""

import pytest

import popart
import poptorch


def test_values_that_scripts_set():
    assert int(popart.SubgraphCopyingStrategy.JustInTime) == 1
    assert int(popart.AccumulateOuterFragmentSchedule.OverlapMemoryOptimized) == 3
    assert int(popart.RecomputationType.RecomputeAll) == 4 and popart.RecomputationType.Standard == 1
    assert popart.SyntheticDataMode.RandomNormal == 2
    assert popart.RecomputationType.NoRecompute == 0


def test_options_take_them():
    options = poptorch.Options()
    options._Popart.set("autoRecomputation", int(popart.RecomputationType.Standard))
    options._Popart.set("subgraphCopyingStrategy", int(popart.SubgraphCopyingStrategy.JustInTime))


def test_the_rest_is_refused():
    with pytest.raises(AttributeError, match="popart has no Builder here"):
        popart.Builder
