"""Records what runs inside a method of a model, and nothing else."""
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
        self.model, self.method, self.recorder = model, method, recorder
        self.before = vars(model).get(method)
        setattr(model, method, self._recorded(getattr(model, method)))

    def _recorded(self, call):

        def recorded(*args, **kwargs):
            with self.recorder:
                return call(*args, **kwargs)

        return recorded

    def undo(self) -> None:
        """Give the model its own method back."""
        if self.before is None:
            delattr(self.model, self.method)
        else:
            setattr(self.model, self.method, self.before)
