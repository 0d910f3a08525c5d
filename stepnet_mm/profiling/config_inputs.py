"""A config's network with random weights, and random images for it."""
from typing import Any

import torch
from mmengine.config import Config
from torch import Tensor, nn

from ..config import EVALUATION, TRAIN, library_of
from ..config.lookup import all_dicts
from ..launch.entry import build_model

#: The default image edge in px, where a config names none.
EDGE = 224


class Forward(nn.Module):
    """The tensor mode of a model as a function of the images alone.

    Args:
        model (BaseModel): a classifier or a detector.
        samples (list): a data sample for each image.
    """

    def __init__(self, model: nn.Module, samples: list):
        super().__init__()
        self.model = model
        self.samples = samples

    def forward(self, images: Tensor):
        """(N, C, H, W) -> the tensors of the heads."""
        return self.model(images, self.samples, mode='tensor')

    def loss(self, images: Tensor) -> Tensor:
        """(N, C, H, W) -> the loss, of a model in training mode."""
        model: Any = self.model
        return model.parse_losses(
            model(images, self.samples, mode='loss'))[0]


def image_size(cfg: Config) -> tuple[int, int]:
    """Height and width in px of a config's images.

    Those of the last crop or resize of the first pipeline that has one: test,
    validation, training.
    """
    for name in EVALUATION[::-1] + TRAIN:
        for transform in reversed(_transforms(cfg.get(name) or {})):
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
    """A network in eval mode, and random images for it.

    Its ``init_cfg`` is not followed: nothing is loaded or downloaded.

    Args:
        cfg (Config): of mmdet or mmpretrain.
        size (tuple[int, int]): height and width of the images, px.
        batch_size (int): N.
        device (torch.device): where both go.

    Returns:
        tuple: the network, and images (N, C, H, W), padded as it asks.
    """
    model: Any = build_model(cfg, device=device, start=False)
    shape = _image_channels(cfg), *size
    if library_of(cfg) == 'mmpretrain':
        samples = _classes(batch_size, device)
        return (Forward(model, samples),
                torch.randn(batch_size, *shape, device=device))
    packed = _boxes(model, shape, batch_size, device)
    return Forward(model, packed['data_samples']), packed['inputs']


def _image_channels(cfg: Config) -> int:
    """Channels of a config's images, as its backbone takes them."""
    backbones = [node['backbone'] for node in all_dicts(cfg.model)
                 if isinstance(node.get('backbone'), dict)]
    return backbones[0].get('in_channels', 3) if backbones else 3


def _transforms(node) -> list:
    """The pipeline of the innermost dataset of a data loader."""
    node = node if isinstance(node, dict) else {}  # a list of loaders
    while 'pipeline' not in node and isinstance(node.get('dataset'), dict):
        node = node['dataset']
    return node.get('pipeline') or []


def _classes(number: int, device: torch.device) -> list:
    """Data samples of class 0."""
    from mmpretrain.structures import DataSample
    return [DataSample().set_gt_label(0).to(device) for _ in range(number)]


def _boxes(model, shape, number: int, device: torch.device) -> dict:
    """Images with 8 boxes of class 0, as the model's preprocessor has them."""
    from mmdet.testing import demo_mm_inputs
    packed = demo_mm_inputs(
        number, shape, num_items=[8] * number, with_mask=model.with_mask,
        device=device)
    for sample in packed['data_samples']:
        sample.gt_instances.labels.zero_()
    return model.data_preprocessor(packed)
