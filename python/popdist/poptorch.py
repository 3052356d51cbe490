"""PopTorch's options for an instance of poprun."""

import poptorch
from poptorch._sections import _DistributedOptions

from . import _environment

__all__ = ["Options"]


def _refuse(name):
    raise RuntimeError(f"Cannot call `{name}` with popdist.poptorch.Options: poprun decides it.")


class _Distributed(_DistributedOptions):
    """This instance's number, which cannot be changed."""

    def __init__(self):
        super().__init__()
        _DistributedOptions.configureProcessId(self, _environment.getInstanceIndex(), _environment.getNumInstances())
        self.__dict__["_decided"] = True

    def disable(self):
        """RuntimeError."""
        _refuse("Distributed.disable")

    def setEnvVarNames(self, var_num_processes, var_process_id):
        """RuntimeError, once constructed."""
        if self.__dict__.get("_decided"):
            _refuse("Distributed.setEnvVarNames")
        return self

    def configureProcessId(self, process_id=None, num_processes=None):
        """RuntimeError."""
        _refuse("Distributed.configureProcessId")


class Options(poptorch.Options):
    """Options with the replicas and the process number that poprun gave: those cannot be set (RuntimeError).

    Args:
        ipus_per_replica: chips that the model needs; RuntimeError where poprun was told another number.
    """

    def __init__(self, ipus_per_replica=None):
        super().__init__()
        if ipus_per_replica is not None:
            _environment.checkNumIpusPerReplica(ipus_per_replica)
        self._distributed = _Distributed()
        self.set(replication_factor=_environment.getNumLocalReplicas())

    def useIpuId(self, ipu_id):
        """RuntimeError."""
        _refuse("useIpuId")

    def replicationFactor(self, replication_factor):
        """RuntimeError."""
        _refuse("replicationFactor")
