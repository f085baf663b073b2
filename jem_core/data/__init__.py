"""Data: one type for all sources (`dataset.Dataset`), and one module a source.

Nothing is imported here: the processes that draw or read pictures need no torch.
"""
