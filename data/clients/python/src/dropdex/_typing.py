"""Types that the standard library has from Python 3.11 on."""

import sys

if sys.version_info >= (3, 11):
    from typing import NotRequired, Unpack
else:
    from typing_extensions import NotRequired, Unpack

__all__ = ["NotRequired", "Unpack"]
