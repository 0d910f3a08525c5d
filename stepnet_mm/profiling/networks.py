"""A config's network with random images; time and memory of networks."""
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any, TypeVar

import torch
from mmengine.config import Config
from torch import Tensor, nn
from torch.utils.benchmark import timer

from ..config import EVALUATION, TRAIN, library_of
from ..config.lookup import all_dicts
from ..launch.entry import build_model

#: The image edge in px where a config names none.
EDGE = 224
Name = TypeVar('Name')


class Forward(nn.Module):
    """The tensor mode of a classifier or detector, a function of the images.

    ``samples`` has a data sample for each image.
    """

    def __init__(self, model: nn.Module, samples: list):
        super().__init__()
        self.model, self.samples = model, samples

    def forward(self, images: Tensor):
        """(N, C, H, W) -> the tensors of the heads."""
        return self.model(images, self.samples, mode='tensor')

    def loss(self, images: Tensor) -> Tensor:
        """(N, C, H, W) -> the loss, of a model in training mode."""
        model: Any = self.model
        return model.parse_losses(
            model(images, self.samples, mode='loss'))[0]


def image_size(cfg: Config) -> tuple[int, int]:
    """Height and width in px of a config's images: the last crop or resize of
    the first pipeline that has one, of test, validation, training.
    """
    for name in EVALUATION[::-1] + TRAIN:
        node = cfg.get(name)
        node = node if isinstance(node, dict) else {}  # or a list of loaders
        while 'pipeline' not in node and isinstance(node.get('dataset'), dict):
            node = node['dataset']
        for transform in reversed(node.get('pipeline') or []):
            edges = transform.get('crop_size') or transform.get('scale')
            if isinstance(edges, int):
                return edges, edges
            if isinstance(edges, (list, tuple)) and all(
                    isinstance(edge, int) for edge in edges):
                width, height = edges
                return height, width
    return EDGE, EDGE


def prepare(cfg: Config, size: tuple[int, int], batch_size: int,
            device: torch.device) -> tuple[Forward, Tensor]:
    """A network in eval mode without its ``init_cfg``, and random images.

    The network is one of mmdet or mmpretrain. The images, (N, C, H, W), have
    a height and a width in px and are padded as it asks. The data samples are
    of class 0, a detector's with 8 boxes each.
    """
    model: Any = build_model(cfg, device=device, start=False)
    backbones = [node['backbone'] for node in all_dicts(cfg.model)
                 if isinstance(node.get('backbone'), dict)]
    channels = backbones[0].get('in_channels', 3) if backbones else 3
    if library_of(cfg) == 'mmpretrain':
        from mmpretrain.structures import DataSample
        samples = [DataSample().set_gt_label(0).to(device)
                   for _ in range(batch_size)]
        return Forward(model, samples), torch.randn(
            batch_size, channels, *size, device=device)
    from mmdet.testing import demo_mm_inputs
    packed = demo_mm_inputs(
        batch_size, (channels, *size), num_items=[8] * batch_size,
        with_mask=model.with_mask, device=device)
    for sample in packed['data_samples']:
        sample.gt_instances.labels.zero_()
    packed = model.data_preprocessor(packed)
    return Forward(model, packed['data_samples']), packed['inputs']


class TimedNetwork:
    """A network that runs on images, to be timed in turn with others.

    Args:
        model (nn.Module): the network.
        images (Tensor): (N, C, H, W), on its device.
        call (callable): a function of the images, whose result a training
            differentiates, such as :func:`summed`.
        dtype (torch.dtype, optional): of autocast.
    """

    def __init__(self, model: nn.Module, images: Tensor,
                 call: Callable, dtype: torch.dtype | None = None):
        self.model, self.images, self.dtype = model, images, dtype
        self.call = call

    def seconds(self, phase: str = 'train') -> float:
        """How long ``'train'`` or ``'infer'`` takes, on a GPU too."""
        self.model.train(phase == 'train')
        self.model.zero_grad(set_to_none=True)
        with torch.cuda.device_of(self.images):
            start = timer()  # waits for the device
            getattr(self, phase)()
            return timer() - start

    def train(self) -> None:
        """A forward and a backward pass."""
        self._forward().backward()

    @torch.no_grad()
    def infer(self) -> None:
        """A forward pass without gradients."""
        self._forward()

    def saved_megabytes(self) -> float:
        """The memory that autograd keeps for the backward pass."""
        self.model.train()
        with count_saved(self.model) as found:
            self.train()
        return sum(found.values()) / 1e6

    def peak_megabytes(self) -> float:
        """A GPU's peak above the memory in use before; 0 on a CPU."""
        if not self.images.is_cuda:
            return 0.
        self.model.zero_grad(set_to_none=True)
        device = self.images.device
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        self.train()
        return (torch.cuda.max_memory_allocated(device) - before) / 1e6

    def _forward(self) -> Any:
        with torch.autocast(self.images.device.type, self.dtype,
                            enabled=self.dtype is not None):
            return self.call(self.images)


def summed(network: Callable) -> Callable[[Tensor], Tensor]:
    """The network's last map, summed up."""
    def call(images: Tensor) -> Tensor:
        out = network(images)
        return (out[-1] if isinstance(out, tuple) else out).sum()

    return call


def interleave(clocks: Mapping[Name, Callable[[], float]], rounds: int,
               warm_up: int = 2) -> dict[Name, list[float]]:
    """Seconds of each round after the warm-up, by name.

    All clocks run in turn in every round, so that a drift of the machine hits
    all alike, and another one is the first in each. The warm-up is for
    caches, thread pools and cuDNN's choices.
    """
    times: dict[Name, list[float]] = {name: [] for name in clocks}
    order = [*clocks]
    for i in range(warm_up + rounds):
        order.append(order.pop(0))
        for name in order:
            seconds = clocks[name]()
            if i >= warm_up:
                times[name].append(seconds)
    return times


def median_ratio(taken: Sequence[float],
                 reference: Sequence[float]) -> float:
    """Median of the rounds' ratios of two results of :func:`interleave`."""
    return median(a / b for a, b in zip(taken, reference))


@contextmanager
def count_saved(model: nn.Module) -> Iterator[dict[int, int]]:
    """The bytes of each storage that autograd saves inside, by its address;
    without the model's parameters and buffers.
    """
    own = {t.untyped_storage().data_ptr()
           for t in (*model.parameters(), *model.buffers())}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        yield saved
