"""Instances: the environment, poprun, gradients averaged between real processes."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
import torch

import popdist
import popdist.poptorch
import poptorch

PYTHON = pathlib.Path(popdist.__file__).parents[1]


def poprun(*arguments, script=None, timeout=120, **environment):
    """Runs poprun with a script of Python; (status, output lines sorted, error text)."""
    command = [sys.executable, "-W", "ignore", "-m", "popdist.poprun", *arguments]
    if script is not None:
        command += [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)]
    paths = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(PYTHON)]).strip(os.pathsep)
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                          env=dict(os.environ) | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"} | environment)
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


def test_a_single_process():
    assert not popdist.isPopdistEnvSet()
    assert (popdist.getNumInstances(), popdist.getInstanceIndex(), popdist.getNumTotalReplicas(),
            popdist.getNumLocalReplicas(), popdist.getNumIpusPerReplica(), popdist.getDeviceId()) == (1, 0, 1, 1, 1, 0)
    popdist.init()
    given = {"w": torch.ones(2)}
    assert popdist.average(given) is given
    assert popdist.execute_on_instances({0}, lambda a, b: a + b, 1, b=2) == 3
    with pytest.raises(ValueError, match="There is no instance 1"):
        popdist.execute_on_instances({1}, print)


def test_options_of_an_instance_are_decided():
    options = popdist.poptorch.Options(ipus_per_replica=2)
    assert isinstance(options, poptorch.Options)
    assert options.Distributed.processId == 0 and options.Distributed.numProcesses == 1
    for call, name in ((lambda made: made.useIpuId(1), "useIpuId"),
                       (lambda made: made.replicationFactor(1), "replicationFactor"),
                       (lambda made: made.Distributed.disable(), "Distributed.disable"),
                       (lambda made: made.Distributed.setEnvVarNames("A", "B"), "Distributed.setEnvVarNames"),
                       (lambda made: made.Distributed.configureProcessId(1, 2), "Distributed.configureProcessId")):
        for made in (options, options.clone()):
            with pytest.raises(RuntimeError, match=f"Cannot call `{name}` with popdist.poptorch.Options"):
                call(made)
    assert options.deviceIterations(4).device_iterations == 4


def test_the_environment_of_poprun(monkeypatch):
    for name, value in {"POPDIST_NUM_TOTAL_REPLICAS": 6, "POPDIST_NUM_LOCAL_REPLICAS": 2,
                        "POPDIST_NUM_IPUS_PER_REPLICA": 4, "POPDIST_REPLICA_INDEX_OFFSET": 2,
                        "OMPI_COMM_WORLD_SIZE": 3, "OMPI_COMM_WORLD_RANK": 1}.items():
        monkeypatch.setenv(name, str(value))
    options = popdist.poptorch.Options(ipus_per_replica=4)
    assert options.replication_factor == 2
    assert options.Distributed.processId == 1 and options.Distributed.numProcesses == 3
    assert popdist.getDeviceId() == 8
    with pytest.raises(RuntimeError, match="--ipus-per-replica 4: give it 3"):
        popdist.poptorch.Options(ipus_per_replica=3)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "one")
    with pytest.raises(RuntimeError, match="OMPI_COMM_WORLD_RANK is 'one'"):
        popdist.getInstanceIndex()


def test_poprun_says_who_is_who():
    status, lines, _ = poprun("--num-instances", "2", "--num-replicas", "4", "--ipus-per-replica=2", script="""
        import popdist
        print(popdist.getInstanceIndex(), popdist.getNumInstances(), popdist.getNumTotalReplicas(),
              popdist.getNumLocalReplicas(), popdist.getReplicaIndexOffset(), popdist.getNumIpusPerReplica())
        """)
    assert status == 0 and lines == ["0 2 4 2 0 2", "1 2 4 2 2 2"]


def test_poprun_stops_all_when_one_fails():
    status, _, errors = poprun("-n", "2", script="""
        import os, sys, time
        if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
            sys.exit(7)
        time.sleep(100)
        """)
    assert status == 7 and "instance 1 ended with status 7" in errors


@pytest.mark.parametrize("arguments, words", [
    (["--num-instances", "2"], "a command is missing"),
    (["--num-instances", "2", "--num-replicas", "3", "true"], "no multiple"),
    (["--num-instances", "0", "true"], "must be at least 1"),
    (["--no-such-option", "true"], "unrecognized arguments"),
    (["--only-output-from-instance", "4", "true"], "there is no instance 4"),
    (["/no/such/program"], "cannot be started"),
])
def test_poprun_refuses(arguments, words):
    status, _, errors = poprun(*arguments)
    assert status == 2 and words in errors


def test_poprun_takes_what_has_no_effect():
    status, lines, errors = poprun("--mpi-global-args=--allow-run-as-root", "--numa-aware", "yes", "-vv", "echo", "-n", "x")
    assert status == 0 and lines == ["x"] and "--mpi-global-args, --numa-aware: without effect" in errors


TRAINING = """
    import torch, popdist
    from poptorch import optim
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 3)
    data = torch.randn(6, 8, 4)
    rank, count = popdist.getInstanceIndex(), popdist.getNumInstances()
    parameters = dict(model.named_parameters())
    update = optim.make_update(torch.optim.Adam(model.parameters(), lr=0.1), parameters)
    for step in range(6):
        part = data[step].chunk(2)
        losses = [model(part[index]).square().mean() for index in ([rank] if count == 2 else [0, 1])]
        gradients = dict(zip(parameters, torch.autograd.grad(sum(losses) / len(losses), parameters.values())))
        update.step(popdist.average(gradients))
    print(" ".join(f"{value:.9f}" for value in torch.cat([p.flatten() for p in model.parameters()]).tolist()))
    """


def alone(script):
    """The script's output in this process, which is a single instance."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(textwrap.dedent(script), {})
    return [float(word) for word in said.getvalue().split()]


def test_two_instances_are_two_replicas():
    status, lines, errors = poprun("-n", "2", script=TRAINING)
    assert status == 0, errors
    assert len(lines) == 2 and lines[0] == lines[1]
    together = [float(word) for word in lines[0].split()]
    both = alone(TRAINING)
    assert max(abs(one - other) for one, other in zip(together, both)) < 1e-6
    half = alone(TRAINING.replace("else [0, 1])", "else [0])"))
    assert max(abs(one - other) for one, other in zip(half, both)) > 1e-3, "half of the data makes no difference"


EXECUTOR = """
    import torch, popdist, poptorch
    import popdist.poptorch
    torch.manual_seed(1)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, x, y):
            out = self.layer(x)
            return out, torch.nn.functional.mse_loss(out, y)

    results = []
    for reduction in (poptorch.ReductionType.Mean, poptorch.ReductionType.Sum):
        model = Model()
        options = popdist.poptorch.Options() if popdist.isPopdistEnvSet() else poptorch.Options().replicationFactor(2)
        options.Training.gradientAccumulation(2).accumulationAndReplicationReductionType(reduction)
        optimizer = poptorch.optim.AdamW(model.parameters(), lr=0.05)
        executor = poptorch.trainingModel(model, options, optimizer)
        # Micro-batches of 5, those of two replicas beside each other in each of two accumulation steps.
        data = torch.randn(4, 2, 2, 5, 4), torch.randn(4, 2, 2, 5, 3)
        if popdist.isPopdistEnvSet():
            data = [part[:, :, popdist.getInstanceIndex()] for part in data]
        for x, y in zip(*data):
            executor(x.reshape(-1, 4), y.reshape(-1, 3))
        results += [value for parameter in model.parameters() for value in parameter.flatten().tolist()]
    print(" ".join(f"{value:.9f}" for value in results))
    """


def test_executors_of_two_instances_are_two_replicas():
    status, lines, errors = poprun("-n", "2", script=EXECUTOR)
    assert status == 0, errors
    assert len(lines) == 2 and lines[0] == lines[1]
    together = [float(word) for word in lines[0].split()]
    assert max(abs(one - other) for one, other in zip(together, alone(EXECUTOR))) < 1e-6


def test_lines_of_instances_do_not_mix():
    status, lines, _ = poprun("-n", "3", script="""
        import os, sys
        for number in range(300):
            for letter in "abcdef":
                sys.stdout.write(letter * 20)
                sys.stdout.flush()
            sys.stdout.write("\\n")
        sys.stdout.write("no end of line")
        """)
    assert status == 0
    whole = "".join(letter * 20 for letter in "abcdef")
    assert lines == [whole] * 900 + ["no end of line"] * 3


def test_what_instances_do_together():
    status, lines, errors = poprun("-n", "2", script="""
        import popdist, torch
        import horovod.torch as hvd
        rank = popdist.getInstanceIndex()
        hvd.init()
        results = [hvd.rank(), hvd.size(), hvd.allreduce(torch.tensor(rank + 1.0)).item(),
                   hvd.allreduce(torch.tensor(rank + 1), op=hvd.Sum).item(),
                   hvd.allgather(torch.full((rank + 1,), rank)).tolist(),
                   hvd.broadcast(torch.tensor([rank + 5]), root_rank=1).item(),
                   [t.item() for t in hvd.grouped_allreduce([1.0, rank * 2.0], op=hvd.Sum)]]
        state = {"b": torch.full((2,), float(rank)), "a": torch.tensor(rank)}
        hvd.broadcast_parameters(state, root_rank=0)
        summed = popdist.average({"w": torch.full((2,), 60000.0).half(), "v": torch.tensor(rank + 1.0)})
        results += [state["b"].tolist(), summed["w"].tolist(), popdist.average({"v": torch.ones(1)}, mean=False)["v"].item()]
        results.append(popdist.execute_on_instances({1}, lambda: "only one"))
        print(results)
        """)
    assert status == 0, errors
    same = "1.5, 3, [0, 1, 1], 6, [2.0, 2.0], [0.0, 0.0], [60000.0, 60000.0], 2.0"
    assert lines == [f"[0, 2, {same}, None]", f"[1, 2, {same}, 'only one']"]


def test_failures_reach_those_that_wait():
    status, lines, _ = poprun("-n", "2", script="""
        import popdist, torch
        rank = popdist.getInstanceIndex()
        try:
            popdist.execute_on_instances({0}, lambda: 1 / 0)
        except Exception as error:
            print(rank, type(error).__name__, error)
        try:
            popdist.average({"w" if rank else "u": torch.ones(2)})
        except RuntimeError as error:
            print(rank, error)
        """)
    assert status == 0
    assert lines[0] == "0 Instances 0 and 1 train different parameters, such as u: all must build the same model."
    assert lines[1] == "0 ZeroDivisionError division by zero"
    assert lines[3] == "1 RuntimeError The function failed in instance 0: ZeroDivisionError: division by zero"


def test_the_stand_in_for_horovod_says_what_it_lacks():
    import horovod.torch as hvd
    assert hvd.size() == 1 and hvd.allreduce(torch.tensor(3.0)).item() == 3
    with pytest.raises(AttributeError, match="DistributedOptimizer is not in the stand-in"):
        hvd.DistributedOptimizer


def test_parts_of_the_data(monkeypatch):
    seen = []
    for rank in range(2):
        monkeypatch.setenv("POPDIST_NUM_TOTAL_REPLICAS", "2")
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(rank))
        from poptorch._dataloader import DataLoader
        loader = DataLoader(popdist.poptorch.Options(), torch.utils.data.TensorDataset(torch.arange(10)), batch_size=2)
        seen.append([value for (batch,) in loader for value in batch.tolist()])
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7]]
