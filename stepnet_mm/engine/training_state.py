"""What a training must know to go on as if it had never stopped.

mmengine's checkpoints hold model, optimizer, schedulers, loss scale and
message hub. This is the rest: where it is in the data, whether a validation
is due, and the random generators and buffers of every rank.
"""
import torch
from mmengine import dist

from ..datasets.random_state import get_random_state
from ..recording import unwrap


def training_state(runner, random: dict = None, **position) -> dict:
    """Gather the state of all ranks. Every rank has to call it.

    Args:
        runner (Runner): its train loop is one of :mod:`.loops`.
        random (dict, optional): states of this rank's generators, where those
            of this moment are not meant.
        **position: in place of what the loop's ``position()`` says.

    Returns:
        dict: the same on all ranks; of numbers, strings and CPU tensors.
    """
    own = dict(random=random or get_random_state())
    if dist.get_rank():
        # The file has rank 0's; BatchNorm's averages differ between ranks.
        own['buffers'] = {
            name: buffer.cpu()
            for name, buffer in unwrap(runner.model).named_buffers()
        }
    return dict(
        **{**runner.train_loop.position(), **position},
        world_size=dist.get_world_size(),
        ranks=dist.all_gather_object(own))


def load_buffers(model, buffers: dict) -> None:
    """Copy a rank's buffers into the model."""
    own = dict(unwrap(model).named_buffers())
    with torch.no_grad():
        for name, value in buffers.items():
            if name in own:
                own[name].copy_(value)


def accumulating(optim_wrapper) -> bool:
    """Whether gradients wait for an update; no checkpoint holds them."""
    update = getattr(optim_wrapper, 'should_update', None)
    return update is not None and not update()
