"""Data: one type for all sources (`Dataset`), and one module a source."""

from .dataset import SPLITS, Dataset, write_dataset
from .held_out import NAMED_LISTS, Pair
from .support import Support

__all__ = ["NAMED_LISTS", "SPLITS", "Dataset", "Pair", "Support", "write_dataset"]
