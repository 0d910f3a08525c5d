"""Residual blocks of any model, as one forward pass shows them.

May import: no other folder.
"""
from .block_search import Place, SearchResult, first_tensor, search, with_first

__all__ = ['Place', 'SearchResult', 'first_tensor', 'search', 'with_first']
