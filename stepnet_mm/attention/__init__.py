"""Self-attention over maps, and what it has to do with convolution."""
from .convolution import conv_to_attention
from .relative import RelativeSelfAttention2d

__all__ = ['RelativeSelfAttention2d', 'conv_to_attention']
