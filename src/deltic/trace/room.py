"""The memory of large arrays that kernels fill, for those who decide when it is given back."""

from deltic.kernels.room import release_idle

__all__ = ["release_idle"]
