"""The config that stands for all of a study, on its page."""
import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

from mmengine.config import Config

from .run import misfit
from .study import Study


class FirstConfig(NamedTuple):
    """The config of a study's first method, which stands for all.

    Attributes:
        base (Config): as its file has it.
        run (Config): with the options of the method.
    """
    base: Config
    run: Config

    @classmethod
    def read(cls, studies: list[Study]) -> 'FirstConfig':
        """Read it once, since that is slow.

        Raises:
            ValueError: if it cannot be read, or the options do not fit.
        """
        method = studies[0].methods[0]
        try:
            base = Config.fromfile(str(method.config))
            run = copy.deepcopy(base)
            run.merge_from_dict(copy.deepcopy(method.options))
        except Exception as error:  # a config is code, and may raise anything
            raise misfit(studies[0], method, error) from None
        return cls(base, run)

    @property
    def dataset(self) -> Mapping:
        """What is trained on."""
        return self.run.train_dataloader.dataset


def value_at(cfg: Config, key: str) -> Any:
    """A config's value at ``a.b.c``; 'not there' otherwise."""
    value: Any = cfg
    for part in key.split('.'):
        value = value.get(part, 'not there') if isinstance(
            value, (Mapping, Config)) else 'not there'
    return value
