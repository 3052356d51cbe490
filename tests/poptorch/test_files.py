"""Compiled models in files."""
import pathlib

import poptorch
import pytest
import torch
from support import Regression


def data():
    generator = torch.Generator().manual_seed(9)
    return torch.randn(4, 4, generator=generator), torch.randn(4, 3, generator=generator)


def executor_of(optimizer=poptorch.optim.AdamW):
    model = Regression()
    options = poptorch.Options().deviceIterations(2).randomSeed(3)
    return poptorch.trainingModel(model, options, optimizer(model.parameters(), lr=0.1))


def test_training_goes_on_where_it_was(tmp_path):
    executor = executor_of()
    executor(*data())
    executor.save(str(tmp_path / "model.poptorch"))
    expected = executor(*data())[1], executor.layer.weight.detach().clone(), executor.rng_state
    loaded = poptorch.load(str(tmp_path / "model.poptorch"))
    assert loaded.isCompiled() and loaded.options.device_iterations == 2
    torch.testing.assert_close(loaded(*data())[1], expected[0])
    torch.testing.assert_close(loaded.layer.weight.detach(), expected[1])
    assert loaded.rng_state == expected[2]
    assert type(executor.model).__name__ == "PoptorchRegression"  # saving does not unwrap


def test_options_may_be_changed_at_loading(tmp_path):
    executor_of().compileAndExport(str(tmp_path / "m"), *data())
    loaded = poptorch.load(str(tmp_path / "m"), edit_opts_fn=lambda options: options.outputMode(poptorch.OutputMode.All))
    assert loaded(*data())[1].shape == (2,)


def test_a_folder_gets_a_file_of_that_name(tmp_path):
    executor_of().compileAndExport(str(tmp_path), *data(), export_model=False)
    assert [file.name for file in pathlib.Path(tmp_path).iterdir()] == ["model.poptorch"]
    with pytest.raises(AssertionError, match="export_model=False"):
        poptorch.load(str(tmp_path))
    other = executor_of()
    other.loadExecutable(str(tmp_path))
    assert other.isCompiled()
    with pytest.raises(poptorch.Error, match="Shape mismatch"):
        other(torch.ones(6, 4), torch.ones(6, 3))


def test_what_cannot_be_saved_or_read(tmp_path):
    with pytest.raises(poptorch.Error, match="not been compiled"):
        executor_of().save(str(tmp_path / "m"))
    with pytest.raises(poptorch.Error, match="no file"):
        poptorch.load(str(tmp_path / "none"))
    (tmp_path / "text").write_text("hello")
    with pytest.raises(poptorch.Error, match="Invalid file"):
        poptorch.load(str(tmp_path / "text"))
    torch.save({"superstep_poptorch": 99}, tmp_path / "new")
    with pytest.raises(poptorch.Error, match="version is 99"):
        poptorch.load(str(tmp_path / "new"))


def test_an_offline_model_runs_when_it_is_loaded(tmp_path):
    executor = poptorch.inferenceModel(Regression(), poptorch.Options().useOfflineIpuTarget())
    executor.compileAndExport(str(tmp_path / "m"), *data())
    assert poptorch.load(str(tmp_path / "m"))(*data())[0].shape == (4, 3)
