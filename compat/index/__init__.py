"""Package index access: files of packages and their requirements. Used for planning only, never by a check.

:class:`Index` answers from its cache if possible and reads the index otherwise. Nothing is built and nothing that was
fetched is executed. A page or a file that could not be read is *unknown*, never treated as absent.

    index = Index(gather("."), Store())
    pins = index.files_of_pins([("trl", "0.14.0"), ("vllm", "0.7.1")])   # one query if they are cached
    index.metadata_many([files[0] for files in pins.values() if files])
    index.close()
"""

from __future__ import annotations

from compat.index.index import Index
from compat.index.metadata import File, Metadata, Requirement
from compat.index.settings import Settings, gather
from compat.index.store import Store

__all__ = ["File", "Index", "Metadata", "Requirement", "Settings", "Store", "gather"]
