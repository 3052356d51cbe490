"""Several instances of one program, each with replicas of its own: what scripts ask of Graphcore's PopDist.

Instances are processes that `poprun` started on this computer; a program that was started without it is the only
instance, with one replica. Executors average their gradients over all instances (`average`). Between the processes runs
torch.distributed (gloo).

Importing this module lets `import horovod.torch` find a stand-in where horovod is not installed
(`popdist.horovod`; SUPERSTEP_POPTORCH_HOROVOD=0: it does not).
"""

from ._environment import (checkNumIpusPerReplica, getDeviceId, getInstanceIndex, getNumInstances, getNumIpusPerReplica,
                           getNumLocalReplicas, getNumTotalReplicas, getReplicaIndexOffset, isPopdistEnvSet)
from ._together import average, barrier, execute_on_instances, init
from ._horovod_finder import install as _install

__all__ = ["average", "barrier", "checkNumIpusPerReplica", "execute_on_instances", "getDeviceId", "getInstanceIndex",
           "getNumInstances", "getNumIpusPerReplica", "getNumLocalReplicas", "getNumTotalReplicas",
           "getReplicaIndexOffset", "init", "isPopdistEnvSet"]

_install()
