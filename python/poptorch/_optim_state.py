"""The state that an optimizer shows: that of the executor it trains, or what was loaded into it."""

import torch

from ._logging import logger


class StateOfUpdate:
    """The half of an optimizer that shows the state of the executor it trains (`state_dict`, `load_state_dict`)."""

    def __init__(self):
        self._state_dict = {"ipu_state": None, "ipu_param": None}
        self._source = None
        self._seen = None
        self.ipu_state_is_dirty = False
        self.host_state_is_dirty = False

    def bind(self, update):
        """From now on the state is that of `update`; a state that is here already is taken over by it."""
        self.refresh()
        self._source = update
        self._seen = None
        self.ipu_state_is_dirty = self.has_state()

    def bound_to(self, update):
        return self._source is update

    def release(self, update):
        """Keeps the state as it is now and forgets the executor."""
        if self.bound_to(update):
            self.refresh()
            self._source = None

    def refresh(self):
        """Copies the executor's state where it has changed."""
        update = self._source
        if update is None or self.ipu_state_is_dirty:
            return
        if self._seen == update.version:
            logger.debug("Using cached optimiser state dict")
            return
        logger.debug("Writing optimiser state tensors from IPU to host.")
        self._state_dict = update.state_dict()
        self._seen = update.version

    def kept_state(self):
        return self._state_dict

    def has_state(self):
        """True once the optimizer has been used, or its state loaded."""
        return self._state_dict.get("ipu_state") is not None and self._state_dict.get("ipu_param") is not None

    def get_state_dict(self):
        """The state as it was last read, with the groups of torch."""
        own = {name: None if value is None else dict(value) for name, value in self._state_dict.items()}
        return {**own, **torch.optim.Optimizer.state_dict(self)}

    def set_state_dict(self, state):
        """Takes a state of `state_dict()`, which acts from the next call of the model on. Else RuntimeError."""
        self.check_state(state)
        self._state_dict = {"ipu_state": state["ipu_state"], "ipu_param": state["ipu_param"]}
        self.ipu_state_is_dirty = True

    @staticmethod
    def check_state(state):
        """Raises RuntimeError for what no PopTorch optimizer wrote."""
        if not state:
            raise RuntimeError("Cannot load the state of an optimizer: it is empty.")
        if "ipu_state" not in state or "ipu_param" not in state:
            raise RuntimeError("Only IPU optimizer states can be loaded onto the IPU. This one has no ipu_state and "
                               "ipu_param: it was not written by a PopTorch optimizer.")
