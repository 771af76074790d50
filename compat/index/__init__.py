"""What package indexes offer and what each file requires: used by the repair alone, never by a check.

:class:`Index` answers from its store where it can and reads the index where it must. Nothing is built and nothing that
was fetched is executed. A page or a file that could not be read is *unknown*; it is never "there is none".

    index = Index(gather("."), Store())
    pins = index.files_of_pins([("trl", "0.14.0"), ("vllm", "0.7.1")])   # one query where they were read before
    index.metadata_many([files[0] for files in pins.values() if files])
    index.close()
"""

from __future__ import annotations

from compat.index.index import Index
from compat.index.records import File, Metadata, Requirement
from compat.index.settings import Settings, gather
from compat.index.store import Store

__all__ = ["File", "Index", "Metadata", "Requirement", "Settings", "Store", "gather"]
