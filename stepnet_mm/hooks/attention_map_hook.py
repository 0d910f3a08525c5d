"""Records and draws self-attention maps while a model trains."""
import torch
from mmengine.dist import master_only
from mmengine.registry import HOOKS

from .. import visualization
from ..attention import (
    AttentionRecord,
    attention_path,
    read_attention_history,
    save_attention,
)
from ..recording import find_attention_layers
from ..recording.probe import measure_attention, sample_inputs
from ..utils.model_wrappers import unwrap
from .measuring_hook import MeasuringHook


@HOOKS.register_module()
class AttentionMapHook(MeasuringHook):
    """Record the heads' attention, and change no bit of the training.

    At the start and every ``interval`` the same images are run in eval mode
    through a network with :class:`RelativeSelfAttention2d` layers. Each
    head's attention of one query pixel of the first image, in 8 bits of all
    of them, and each head's mean attention distance over query pixels and
    images, go to
    ``<work_dir>/<run>/attention/<name>_<iteration>.npz``
    (:func:`read_attention_history` reads these files,
    ``tools/analysis/plot_attention.py`` draws them). The distances go to the
    log and every visualizer back end too, figures to the latter; heads count
    from 1 there.

    Every process measures, so that none waits and all see the same errors;
    the first one writes.

    Args:
        interval (int): epochs (iterations) between measurements. Defaults
            to 1.
        by_epoch (bool): whether ``interval`` counts epochs. Defaults to True.
        query (tuple[int, int], optional): row and column of the query pixel,
            in pixels of the image as the network takes it. Left out, its
            middle.
        probe (dict, optional): ``num_samples`` (8), spread over the dataset,
            and ``dataloader``, left out the config's ``val_dataloader``.
        layers (str, optional): a regular expression for the names of the
            layers; left out, all.
        figure_interval (int): every ``figure_interval``-th measurement, and
            at the end, figures are drawn for the visualizer; 0 for never.
            Defaults to 10.
        name (str): the first part of file and scalar names. Several
            of these hooks need different ones.

    Raises:
        ValueError: on a wrong argument, or before training if the model has
            no such layers, or the image no such pixel.
    """

    def __init__(self,
                 interval: int = 1,
                 by_epoch: bool = True,
                 query: tuple | None = None,
                 probe: dict | None = None,
                 layers: str | None = None,
                 figure_interval: int = 10,
                 name: str = 'attention'):
        super().__init__(interval, by_epoch, dict() if probe is None else
                         probe, figure_interval, name)
        self.query = query
        self.layers = layers
        self._inputs = torch.empty(0)
        self._newest: AttentionRecord | None = None
        self._count = 0

    def before_train(self, runner) -> None:
        """Take the images, and record the start of a training."""
        super().before_train(runner)
        find_attention_layers(runner.model, self.layers)
        self._take_images(runner)
        self._count = 0
        record = self._record(runner, runner.iter)  # a resumed run's: a check
        if runner.iter == 0:
            self._keep(runner, record)

    def after_train(self, runner) -> None:
        """Draw the records that are not drawn yet."""
        if self._newest is not None and self.figure_interval and (
                self._count % self.figure_interval):
            self._draw(runner, self._newest)

    def _measure(self, runner) -> None:
        self._keep(runner, self._record(runner, runner.iter + 1))

    def _take_images(self, runner) -> None:
        self._inputs = sample_inputs(
            unwrap(runner.model), self._build_loader(runner),
            self._of_probe('num_samples', 8)).cpu()

    def _record(self, runner, iteration: int) -> AttentionRecord:
        model = unwrap(runner.model)
        inputs = self._inputs.to(next(model.parameters()).device)
        return measure_attention(model, inputs, self.query, self.layers,
                                 iteration=iteration,
                                 name=runner.experiment_name)

    @master_only
    def _keep(self, runner, record: AttentionRecord) -> None:
        save_attention(record, attention_path(
            runner.log_dir, self.name, record.iteration))
        self._log(runner, record)
        self._newest = record
        self._count += 1
        if self.figure_interval and not self._count % self.figure_interval:
            self._draw(runner, record)

    def _log(self, runner, record: AttentionRecord) -> None:
        means = {layer.name: layer.mean_distance for layer in record.layers}
        numbers = '  '.join(f'{k}: {v:.4g}' for k, v in means.items())
        runner.logger.info(
            f'Iter(train) [{record.iteration}/{runner.max_iters}]  '
            f'mean attention distance (px)  {numbers}')
        scalars = {f'{layer.name}/head{i}': value for layer in record.layers
                   for i, value in enumerate(layer.distance, 1)}
        self._add_scalars(runner, {**means, **scalars}, record.iteration)

    def _draw(self, runner, newest: AttentionRecord) -> None:
        records = self._history(runner, newest)
        self._show(runner, lambda: visualization.attention_figures(records),
                   records[-1].iteration)

    def _history(self, runner,
                 newest: AttentionRecord) -> list[AttentionRecord]:
        """The records of this training that compare with the newest one."""
        try:
            records = read_attention_history(runner.work_dir, self.name)
        except ValueError as error:
            runner.logger.warning(
                f'AttentionMapHook: only the newest record is drawn: {error}')
            records = [newest]
        alike = [r for r in records if r.view == newest.view]
        if len(alike) < len(records):
            runner.logger.warning(
                f'AttentionMapHook: {len(records) - len(alike)} earlier '
                f'records {self.name!r} in {runner.work_dir} are of other '
                'layers, images or another query, so they are not drawn')
        return alike
