"""Digests of configs: the same for what trains the same."""
import hashlib
import json
from typing import Any

from mmengine.config import Config


def digest(content) -> str:
    """12 hexadecimal digits of a part of a config."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def config_digest(cfg: Config) -> str:
    """A digest of a run's config, the same for all its seeds and folders."""
    return digest(comparable(cfg))


def comparable(cfg: Config) -> dict[str, Any]:
    """A run's config without seed, launcher and work dir."""
    content = cfg.to_dict()
    for key in ('work_dir', 'launcher'):
        content.pop(key, None)
    randomness = content.pop('randomness', {})
    randomness.pop('seed', None)
    if randomness:  # a config without it equals one with a seed alone
        content['randomness'] = randomness
    return content
