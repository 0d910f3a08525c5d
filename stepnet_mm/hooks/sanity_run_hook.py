"""Before a training: warnings of its data, a validation of two batches."""
import copy
import logging
import os
import re
from contextlib import redirect_stdout
from types import SimpleNamespace

import torch
from mmengine import dist
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.hooks import Hook
from mmengine.runner import IterBasedTrainLoop, Runner, ValLoop
from torch.utils.data import DataLoader

from ..datasets.data_warnings import data_warnings
from ..recording.probe import restored_state
from ..utils import error_origin
from ..utils.data_errors import DataError, name_samples
from ..utils.hook_helpers import unwrap
from .tns_metric import TNSMetricHook

#: Images of a metric that is tried: COCO's looks at all of them, in seconds.
MOST = 5000
#: Methods that may prepare a validation, and modules whose hooks do not.
PREPARING = 'before_run', 'before_val', 'before_train', 'after_train'
HARMLESS = ('mmengine.', 'mmdet.', 'mmpretrain.engine.hooks.class_num',
            'mmpretrain.engine.hooks.ema', 'stepnet_mm.')
#: Arguments and attributes of metrics that name files to be written.
WRITTEN = 'out', 'save_dir', 'csv_dir', 'file_path'


class SanityRunHook(Hook):
    """Try the validation in the first seconds, on two batches.

    Loader and metrics are built anew from the config, the model is a copy, no
    hook is called and the random generators are set back: the training is the
    same bit for bit. Left out on a resume and where a user's loop or hook, or
    data that the model holds, may prepare the validation. An error that went
    through a user's code is a warning, for that code may need results of the
    training, or allow one instance only; so is a lack of GPU memory for the
    second model.

    Raises:
        RuntimeError: on all ranks, from an error on one of them.
    """
    # After LoadReportHook, whose hooks on the model would be copied.
    priority = 'LOW'

    def before_train(self, runner) -> None:
        """Warn of unsuitable data, and validate."""
        if not isinstance(runner, Runner):
            return
        for module in runner.model.modules():
            if hasattr(module, 'check_frozen_steps'):
                module.check_frozen_steps()  # as the first iteration does
        warnings = data_warnings(runner) if dist.is_main_process() else []
        error = (_error(runner, warnings) if _stands_for_validation(runner)
                 else None)
        for line in warnings:
            runner.logger.warning(line)
        texts = dist.all_gather_object(
            error and f'{_text(error)}; correct it, or leave this run out '
            'with --skip-data-check')
        for text in filter(None, texts):
            raise RuntimeError(text) from error


def _stands_for_validation(runner) -> bool:
    """Whether the validation of two batches says how a whole one will end."""
    loop, cfg = runner.train_loop, runner.cfg
    last = (loop.max_iters if isinstance(loop, IterBasedTrainLoop)
            else loop.max_epochs)
    others = [type(hook) for hook in runner.hooks
              if not type(hook).__module__.startswith(HARMLESS)]
    return (not runner.iter and type(runner.val_loop) is ValLoop
            and type(runner.val_evaluator) is Evaluator
            and getattr(loop, 'val_begin', 1) <= last
            and isinstance(cfg.get('val_dataloader'), dict)
            and not cfg.get('compile') and not _has_data(runner.model)
            and all(getattr(hook, name) is getattr(Hook, name)
                    for hook in others for name in dir(Hook)
                    if name.startswith(PREPARING)))


def _has_data(model) -> bool:
    """Whether a model reads data of its own, as a retriever's gallery."""
    return any(isinstance(part, DataLoader)
               or isinstance(part, dict) and 'dataset' in part
               for module in model.modules()
               for part in vars(module).values())


def _error(runner, warnings: list) -> Exception | None:
    """The error of a sanity run; uncertain ones are added to warnings."""
    try:
        model = copy.deepcopy(unwrap(runner.model))
    except Exception:  # it may hold anything
        return None
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with (restored_state(model), open(os.devnull, 'w') as nowhere,
              redirect_stdout(nowhere)):
            loop = _build_loop(runner, model)
            for number, batch in zip(range(2), loop.dataloader):
                loop.run_iter(number, batch)
            if dist.is_main_process() and len(loop.dataloader.dataset) <= MOST:
                warnings += filter(None, map(_why_no_score,
                                             loop.evaluator.metrics))
    except Exception as error:  # of anybody's code
        reason = _why_uncertain(error)
        if not reason:
            return error
        warnings.append(f'{_text(error)}; goes on, for {reason}')
    finally:
        logging.disable(disabled)
    return None


def _why_uncertain(error: Exception) -> str:
    """Why a later validation may do without the error; '' if it will not."""
    if isinstance(error.__cause__ or error, torch.cuda.OutOfMemoryError):
        return 'a second model is in memory only now'
    if error_origin.is_of_user(error):
        return 'code that is in no library may need what a training makes'
    return ''


def _text(error: Exception) -> str:
    if isinstance(error, DataError):
        # A worker's error holds the whole traceback: its last part counts.
        return f'sanity run, {str(error).strip().rpartition("DataError: ")[2]}'
    names = error_origin.functions_in(error)
    key = ('model' if 'val_step' in names else
           'val_evaluator' if {'process', 'build_evaluator',
                               'compute_metrics'} & names else
           'val_dataloader')
    said = f'{type(error).__name__}: {error}'
    if 'Original Traceback' in said:  # of a worker
        said = said.strip().splitlines()[-1]
    return (f'sanity run, {key}: expected two batches to be validated before '
            f'the training, got {said}')


def _build_loop(runner, model) -> ValLoop:
    """mmengine's, with nothing of the Runner's."""
    cfg = copy.deepcopy(runner.cfg)
    # Without a worker, what a dataset changes in modules would stay. A config
    # with none keeps none: in a worker a transform can start no processes.
    workers = min(1, cfg.val_dataloader.get('num_workers', 0))
    cfg.val_dataloader.update(num_workers=workers, persistent_workers=False)
    loader = runner.build_dataloader(cfg.val_dataloader, runner.seed)
    name_samples(loader, 'val_dataloader')
    # Some clear their folder as soon as they are built.
    evaluator = runner.build_evaluator(_without_written(cfg.val_evaluator))
    evaluator.metrics = [
        metric for metric in evaluator.metrics if _is_harmless(metric)]
    stand_in = SimpleNamespace(
        model=model, val_evaluator=evaluator, visualizer=SimpleNamespace(),
        call_hook=lambda *args, **kwargs: None)
    TNSMetricHook().before_val(stand_in)
    return ValLoop(stand_in, loader, evaluator, fp16=runner.val_loop.fp16)


def _without_written(part):
    """The metrics of a config that are not told where to write."""
    if isinstance(part, dict) and 'metrics' in part:
        part['metrics'] = _without_written(part['metrics'])
        return part
    metrics = part if isinstance(part, (list, tuple)) else [part]
    return [metric for metric in metrics
            if not (isinstance(metric, dict) and _names_files(metric))]


def _is_harmless(metric) -> bool:
    """Whether a metric writes no files, also while it processes a batch."""
    return (type(metric).__module__.partition('.')[0] in error_origin.LIBRARIES
            and not _names_files(vars(metric)))


def _names_files(arguments: dict) -> bool:
    return any(isinstance(value, (str, os.PathLike))
               for name, value in arguments.items()
               if name.startswith(WRITTEN))


def _why_no_score(metric) -> str:
    """Why a metric cannot score its results, '' if it can."""
    if type(metric).evaluate is not BaseMetric.evaluate:
        return ''
    try:
        metric.compute_metrics(metric.results)
    except Exception as error:  # of anybody's code
        # topk, of torch and of mmpretrain's Accuracy
        if re.search('k out of range|accuracy is unavailable', str(error)):
            raise
        return (f'sanity run, val_evaluator: {type(metric).__name__} cannot '
                f'score two batches ({type(error).__name__}: {error}); unless '
                'it needs the whole dataset, the first validation ends so')
    return ''
