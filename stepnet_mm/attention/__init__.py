"""Self-attention over maps, and what it has to do with convolution.

SE, CBAM and the other attention modules are in steps/.

May import: utils.
"""
from .attention_record import (
    AttentionRecord,
    LayerAttention,
    attention_path,
    mean_attention_distance,
    read_attention_histories,
    read_attention_history,
    read_attention_record,
    save_attention,
    uniform_attention_distance,
)
from .convolution import conv_to_attention
from .self_attention import RelativeSelfAttention2d

__all__ = [
    'AttentionRecord', 'LayerAttention', 'RelativeSelfAttention2d',
    'attention_path', 'conv_to_attention',
    'mean_attention_distance', 'read_attention_histories',
    'read_attention_history', 'read_attention_record', 'save_attention',
    'uniform_attention_distance']
