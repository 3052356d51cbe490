"""Parameters of which groups of replicas have values of their own: dimension 0 is the group."""

import torch

from .. import enums
from .._errors import Error


class Grouping:
    """How the replicas of one parameter form groups."""

    def __init__(self, name, kind, shards, mode):
        if not isinstance(kind, enums.CommGroupType):
            raise Error(f"replicaGrouping of {name} takes a poptorch.CommGroupType, not {kind!r}")
        if mode != enums.VariableRetrievalMode.OnePerGroup:
            raise Error(f"replicaGrouping of {name}: only VariableRetrievalMode.OnePerGroup is computed")
        self.name, self._kind, self._shards = name, kind, shards

    @property
    def applies(self):
        """False for one group of all replicas, where the parameter is as any other."""
        return self._kind != enums.CommGroupType.All

    def groups(self, replicas):
        """How many groups there are. Error: groups of this size do not divide the replicas."""
        if self._kind == enums.CommGroupType.NoGrouping:
            return replicas
        if self._shards < 1 or replicas % self._shards:
            raise Error(f"replicaGrouping of {self.name}: groups of {self._shards} do not divide {replicas} replicas")
        return replicas // self._shards

    def group(self, replica, replicas):
        """The group of a replica."""
        if self._kind == enums.CommGroupType.NoGrouping:
            return replica
        if self._kind == enums.CommGroupType.Consecutive:
            return replica // self._shards
        return replica % self.groups(replicas)

    def check(self, parameter, replicas):
        """Error where the parameter's dimension 0 is not the number of groups."""
        if parameter.dim() == 0:
            raise Error(f"Scalars cannot be passed as per-replica weight tensor values: {self.name} is one")
        if parameter.shape[0] != self.groups(replicas):
            raise Error(f"replicaGrouping of {self.name}: dimension 0 is {parameter.shape[0]}, there are "
                        f"{self.groups(replicas)} groups of replicas")


class _GroupedParameter(torch.nn.Parameter):
    """A parameter as an executor shows it: the same memory, and `replicaGrouping`."""

    def replicaGrouping(self, comm_group_type, shards, variable_retrieval_mode):
        """Gives groups of `shards` replicas (Consecutive, Orthogonal; NoGrouping: each replica) rows of their own.

        Before the model is compiled. Error: compiled already, another retrieval mode than OnePerGroup.
        """
        executor, name = self._shown
        if executor.isCompiled():
            raise Error(f"replicaGrouping of {name} comes before the model is compiled: destroy() the executor first")
        grouping = Grouping(name, comm_group_type, shards, variable_retrieval_mode)
        executor.per_replica_params.pop(name, None)
        if grouping.applies:
            executor.per_replica_params[name] = grouping


def shown(parameter, executor, name):
    """The parameter with `replicaGrouping`."""
    found = torch.Tensor._make_subclass(_GroupedParameter, parameter.data, parameter.requires_grad)
    found._shown = (executor, name)
    return found
