"""Records the forward passes inside one method of a model."""
from ..utils.replaced_method import ReplacedMethod
from .recorder import TrajectoryRecorder


class RecordedCalls:
    """Every call of a model's method runs under a recorder, until undone.

    The hooks are there during the call only, so none stays behind when it
    raises.

    Args:
        model (nn.Module): has the method; also a DDP wrapper.
        method (str): such as ``'train_step'``.
        recorder (TrajectoryRecorder): takes the samples.
    """

    def __init__(self, model, method: str, recorder: TrajectoryRecorder):
        self.recorder = recorder
        self._replaced = ReplacedMethod(model, method, self._call)

    def undo(self) -> None:
        """Give the model its own method back."""
        self._replaced.undo()

    def _call(self, method, *args, **kwargs):
        with self.recorder:
            return method(*args, **kwargs)
