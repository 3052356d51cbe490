"""Execution strategies: which stage, phase and chip each block of a model has. Values never depend on them."""

from . import enums
from ._errors import Error
from ._logging import logger


class Stage:
    """Blocks that run as one, by their names; `ipu(n)` puts them on a chip."""

    def __init__(self, *block_ids):
        assert all(isinstance(block, str) for block in block_ids), f"Block ids are strings, not {block_ids!r}"
        self._blocks = block_ids
        self._stage_id = -1
        self._phase_id = -1
        self._ipu = None

    @property
    def blocks(self):
        """Names of the blocks."""
        return self._blocks

    def ipu(self, ipu):
        """Puts the stage on chip `ipu` of its replica."""
        assert isinstance(ipu, int), f"The number of an IPU is an integer, not {ipu!r}"
        self._ipu = ipu
        return self

    def _setStage(self, stage):
        assert self._stage_id in (-1, stage), f"Stage {self._blocks} is number {self._stage_id} already"
        self._stage_id = stage
        return self

    def __repr__(self):
        where = "" if self._ipu is None else f".ipu({self._ipu})"
        return f"Stage({', '.join(map(repr, self._blocks))}){where}"


class Phase:
    """What runs in one phase: names of blocks (one stage), or stages, side by side."""

    def __init__(self, *parts):
        if parts and all(isinstance(part, str) for part in parts):
            self.stages = [Stage(*parts)]
        else:
            self.stages = [part if isinstance(part, Stage) else Stage(*_names(part)) for part in parts]

    def stage(self, index):
        """The stage of this index."""
        return self.stages[index]

    def ipus(self, *ipus):
        """Puts the phase's stages on these chips, one each."""
        assert len(ipus) == len(self.stages), f"Phase has {len(self.stages)} stages, but {len(ipus)} ids provided"
        for stage, ipu in zip(self.stages, ipus):
            stage.ipu(ipu)
        return self

    def __repr__(self):
        return f"Phase({', '.join(map(repr, self.stages))})"


def _names(part):
    names = [part] if isinstance(part, str) else list(part)
    assert all(isinstance(name, str) for name in names), f"Blocks are named by strings, not {part!r}"
    return names


class _IExecutionStrategy:
    """What a strategy knows: the stage of each block by name, or a rule (`AutoStage`)."""

    MODE = 0

    def __init__(self, block_map, auto_stage=None):
        self._block_map = block_map
        self._auto_stage = auto_stage

    def stage(self, block_id):
        """The stage of a block of the list. AssertionError: no such block."""
        assert block_id in self._block_map, f"Unknown block {block_id}"
        return self._block_map[block_id]

    def phase_count(self):
        """Phases of the forward pass; 0 where the strategy has none."""
        return 0

    def backendOptions(self):
        """The strategy among the values of `Options.toDict`."""
        return {"execution_mode": self.MODE}

    def __repr__(self):
        inside = repr(list(self._block_map.values())) if self._block_map else f"AutoStage.{self._auto_stage.name}"
        return f"{type(self).__name__}({inside})"


class PipelinedExecution(_IExecutionStrategy):
    """Stages work on different micro-batches at the same time.

    Arguments: an `AutoStage`, or one stage each: the name of a block, a list of names, a `Stage`.
    Training takes gradientAccumulation >= 2 s - 1 for s stages of the forward pass, inference deviceIterations >= s.
    """

    def __init__(self, *args):
        if len(args) == 1 and isinstance(args[0], enums.AutoStage):
            super().__init__({}, args[0])
            return
        block_map = {}
        for number, part in enumerate(args):
            stage = part if isinstance(part, Stage) else Stage(*_names(part))
            stage._setStage(number)
            _add_blocks(block_map, stage)
        super().__init__(block_map, None if block_map else enums.AutoStage.SameAsIpu)


class ShardedExecution(PipelinedExecution):
    """Stages run one after the other on their chips. Arguments as `PipelinedExecution`."""

    MODE = 1


class _IPhasedExecution(_IExecutionStrategy):
    """Phases run in turn, and tensors may leave the chip between them. AssertionError without phases."""

    MODE = 2
    SERIAL = False

    def __init__(self, *phases):
        assert phases, ("There is currently no AutoStage for PhasedExecution, please explicitly specify the phases")
        self._tensors_liveness = enums.Liveness.AlwaysLive
        self._separate_backward_phase = False
        self._phases = []
        block_map = {}
        for number, part in enumerate(_flattened(phases)):
            phase = part if isinstance(part, Phase) else Phase(*(part if isinstance(part, (list, tuple)) else [part]))
            self._phases.append(phase)
            for stage in phase.stages:
                stage._phase_id = number
                _add_blocks(block_map, stage)
        for index, stage in enumerate(stage for phase in self._phases for stage in phase.stages):
            stage._stage_id = index
        super().__init__(block_map)

    def phase(self, phase):
        """The phase of this number."""
        assert isinstance(phase, int) and phase >= 0, "Phases are identified by positive integers"
        return self._phases[phase]

    def phase_count(self):
        """Phases of the forward pass."""
        return len(self._phases)

    def useSeparateBackwardPhase(self, use=True):
        """Whether the last forward phase is one of its own, apart from the first backward phase."""
        assert isinstance(use, bool), "useSeparateBackwardPhase takes True or False"
        self._separate_backward_phase = use
        return self

    def backendOptions(self):
        """The strategy among the values of `Options.toDict`."""
        return {**super().backendOptions(), "separate_backward_phase": self._separate_backward_phase,
                "tensors_liveness": self._tensors_liveness.value, "serial_phases_execution": self.SERIAL}

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self._phases))})"


class ParallelPhasedExecution(_IPhasedExecution):
    """Two groups of chips in turn: even phases on even chips, odd phases on odd ones."""

    def sendTensorsOffChipAfterFwd(self, off_chip=True):
        """Whether tensors leave the chip between the forward and the backward pass."""
        assert isinstance(off_chip, bool), "sendTensorsOffChipAfterFwd takes True or False"
        self._tensors_liveness = enums.Liveness.OffChipAfterFwd if off_chip else enums.Liveness.AlwaysLive
        return self


class SerialPhasedExecution(_IPhasedExecution):
    """All phases in turn on one group of chips."""

    SERIAL = True

    def setTensorsLiveness(self, liveness):
        """When tensors leave the chip: a `Liveness`."""
        assert isinstance(liveness, enums.Liveness), "setTensorsLiveness takes a poptorch.Liveness"
        self._tensors_liveness = liveness
        return self


def _flattened(phases):
    # One list of phases is as good as phases one by one.
    if len(phases) == 1 and isinstance(phases[0], (list, tuple)) and phases[0] and not isinstance(phases[0][0], str):
        return phases[0]
    return phases


def _add_blocks(block_map, stage):
    for block in stage.blocks:
        assert block not in block_map, f"{block} associated with more than one stage"
        block_map[block] = stage


class Placement:
    """Where the blocks of one forward pass run: filled in as blocks begin, then checked against the strategy's rules."""

    def __init__(self, strategy):
        self._strategy = strategy
        self._next_id = 0
        self._auto = {}
        self.blocks = []  # (name, stage, phase, chip) in order of their first use
        self.chips = []   # the chip after each change, in order of execution

    def restart_numbers(self):
        """Blocks without a name are numbered from 0 again."""
        self._next_id = 0

    def begin(self, user_id, ipu_id):
        """A block begins. AssertionError: a block that the strategy's list does not name; a chip missing."""
        if user_id is None:
            user_id = str(self._next_id)
            self._next_id += 1
        stage, phase, ipu = self._place(user_id, ipu_id)
        if ipu is None:
            logger.debug("No IPU specified for block %s: default to stage_id %d", user_id, stage)
            ipu = stage
        logger.debug("Starting block id=%s stage=%d phase=%d ipu=%d", user_id, stage, phase, ipu)
        self.blocks.append((user_id, stage, phase, ipu))
        if not self.chips or self.chips[-1] != ipu:
            self.chips.append(ipu)
        return user_id

    def _place(self, name, ipu_id):
        known = self._strategy._block_map
        if known:
            assert name in known, f"Unknown Block '{name}' list of expected Blocks: {list(known)}"
            stage = known[name]
            return stage._stage_id, max(stage._phase_id, -1), stage._ipu if stage._ipu is not None else ipu_id
        if self._strategy._auto_stage == enums.AutoStage.SameAsIpu:
            assert ipu_id is not None, (
                f"poptorch.AutoStage.SameAsIpu was selected but no IPU was specified for block {name}")
            return ipu_id, -1, ipu_id
        if name not in self._auto:
            self._auto[name] = 1 + len(self._auto)
        return self._auto[name], -1, ipu_id

    def words(self):
        """Where what runs now is, in PopTorch's words; what runs before the first block is on chip 0."""
        if not self.chips:
            self.chips.append(0)
        _, stage, phase, ipu = self.blocks[-1] if self.blocks else ("", 0, 0, 0)
        mode = ("Pipelined", "Sharded", "Phased")[self._strategy.MODE]
        part = f"phase({max(phase, 0)})" if self._strategy.MODE == 2 else f"stage({stage})"
        return f"mode({mode}), ipu({ipu}), {part}"

    def ran(self):
        """An operator ran: what runs before the first block is on chip 0."""
        if not self.chips:
            self.chips.append(0)

    def stages(self):
        """Pipeline stages of the forward pass: runs of one chip."""
        return max(1, len(self.chips))

    def pipelined(self):
        """Whether stages work on different micro-batches at the same time."""
        return self._strategy.MODE == 0

    def chips_per_replica(self):
        """Chips of one replica, idle ones below the highest used included."""
        used = set(self.chips) or {0}
        return max(len(used), max(used) + 1)

    def check(self, training, options, attached):
        """Raises Error where the strategy's rules are broken: accumulation or iterations too few, phases on wrong chips.

        The number of chips counts where hardware is modeled and `attached`.
        """
        logger.debug("enablePipelining set to value %d", self._strategy.MODE == 0 and self.stages() > 1)
        self._check_phases()
        self._check_pipeline(training, options)
        check_chips(self.chips_per_replica() * options.replication_factor, options.auto_round_num_ipus or not attached)

    def _check_phases(self):
        if not isinstance(self._strategy, ParallelPhasedExecution):
            return
        for name, _, phase, ipu in self.blocks:
            if ipu % 2 != phase % 2:
                raise Error(f"Block {name} of phase {phase} is on IPU {ipu}: in a ParallelPhasedExecution even phases run "
                            "on even IPUs and odd phases on odd ones")

    def _check_pipeline(self, training, options):
        if self._strategy.MODE != 0 or self.stages() == 1:
            return
        stages = self.stages()
        if training:
            needed, have, what = 2 * stages - 1, options.Training.gradient_accumulation, "Training.gradientAccumulation"
            note = (f" Please note that a model with {stages} pipeline stages in PopTorch will have an additional "
                    f"{stages - 1} stages when training.")
        else:
            needed, have, what, note = stages, options.device_iterations, "deviceIterations", ""
        if have < needed:
            raise Error(f"poptorch.Options().{what} must be greater than or equal to the number of pipeline stages "
                        f"({needed}) when using poptorch.PipelinedExecution.{note} It is {have}.")


def check_chips(count, round_up):
    """The number of chips that is taken for `count`. Error: more than 64; no power of two unless `round_up`."""
    rounded = 1 << (count - 1).bit_length()
    if rounded > 64:
        raise Error(f"Too many IPUs requested ({rounded}). Experiments that need more than 64 IPUs take several processes: the "
                    "largest system that is modeled has 64")
    if rounded != count and not round_up:
        raise Error(f"The model specifies the use of {count} IPUs, however PopTorch must reserve a minimum of {rounded} in "
                    "order to allow the model to run, because PopTorch must reserve a power of 2 or maximum of 64 IPUs per "
                    "process. Please reconfigure your model to use a different number of IPUs or set "
                    "poptorch.Options().autoRoundNumIPUs(True).")
    if rounded != count:
        logger.warning("%d IPUs are reserved, of which %d are used: the number of IPUs is rounded to a power of 2",
                       rounded, count)
    return rounded
