"""What `poprun` told this process: its number among the instances, and how many replicas there are."""

import os

TOTAL_REPLICAS = "POPDIST_NUM_TOTAL_REPLICAS"
LOCAL_REPLICAS = "POPDIST_NUM_LOCAL_REPLICAS"
IPUS_PER_REPLICA = "POPDIST_NUM_IPUS_PER_REPLICA"
REPLICA_OFFSET = "POPDIST_REPLICA_INDEX_OFFSET"
INSTANCES = "OMPI_COMM_WORLD_SIZE"
INSTANCE = "OMPI_COMM_WORLD_RANK"
LOCAL_INSTANCES = "OMPI_COMM_WORLD_LOCAL_SIZE"
LOCAL_INSTANCE = "OMPI_COMM_WORLD_LOCAL_RANK"


def _number(name, otherwise):
    text = os.environ.get(name)
    if text is None:
        return otherwise
    if not text.isdecimal():
        raise RuntimeError(f"The environment variable {name} is '{text}': poprun sets it to a number.")
    return int(text)


def isPopdistEnvSet():
    """True in a process that `poprun` started."""
    return TOTAL_REPLICAS in os.environ


def getNumInstances():
    """How many processes poprun started; 1 without it."""
    return _number(INSTANCES, 1) if isPopdistEnvSet() else 1


def getInstanceIndex():
    """This process's number, from 0."""
    return _number(INSTANCE, 0) if isPopdistEnvSet() else 0


def getNumTotalReplicas():
    """Replicas of the model in all instances together."""
    return _number(TOTAL_REPLICAS, 1)


def getNumLocalReplicas():
    """Replicas of the model in this instance."""
    return _number(LOCAL_REPLICAS, 1)


def getReplicaIndexOffset():
    """The number of this instance's first replica among all."""
    return _number(REPLICA_OFFSET, 0)


def getNumIpusPerReplica():
    """Chips of one replica, as poprun was told; 1 without it."""
    return _number(IPUS_PER_REPLICA, 1)


def checkNumIpusPerReplica(ipus_per_replica):
    """RuntimeError where poprun was told another number of chips of a replica."""
    if isPopdistEnvSet() and ipus_per_replica != getNumIpusPerReplica():
        raise RuntimeError(f"The model needs {ipus_per_replica} chips for a replica and poprun was started with "
                           f"--ipus-per-replica {getNumIpusPerReplica()}: give it {ipus_per_replica}.")


def getDeviceId(ipus_per_replica=None):
    """The number of this instance's first chip among all, if each replica has so many (poprun's number)."""
    if ipus_per_replica is None:
        ipus_per_replica = getNumIpusPerReplica()
    return getReplicaIndexOffset() * ipus_per_replica
