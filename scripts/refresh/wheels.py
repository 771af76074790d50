"""``wheels.csv``: the Pythons and systems that releases of compiled packages have wheels for.

Packages that installers build from source where no wheel fits, with all their releases; ``releases.csv`` has those from a
floor on. One row for consecutive releases with the same wheels; nothing is downloaded but the list of files.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.version import Version

from scripts.pack_wheels import WHEELS
from scripts.refresh.index import Index
from scripts.refresh.metadata import wheels
from scripts.refresh.tables import Row, changed, load, text_of
from scripts.refresh.updates import THREADS, Request, Update
from scripts.refresh.wheel import UnreadableError

COLUMNS = ("package", "first", "last", "wheels", "known", "source", "date")
COMPILED = (
    "aiohttp", "av", "bitarray", "blis", "cffi", "contourpy", "cryptography", "ctranslate2", "cymem", "cython", "debugpy",
    "decord", "dm-tree", "duckdb", "editdistance", "faiss-cpu", "fasttext-wheel", "frozenlist", "greenlet", "grpcio",
    "grpcio-tools", "h5py", "hf-transfer", "hf-xet", "hiredis", "httptools", "jaxlib", "jiter", "kiwisolver", "levenshtein",
    "llvmlite", "lxml", "lz4", "matplotlib", "maturin", "ml-dtypes", "msgpack", "msgspec", "multidict", "murmurhash", "ninja",
    "numba", "numexpr", "numpy", "onnx", "onnxruntime", "onnxruntime-gpu", "opencv-python", "opencv-python-headless",
    "orjson", "pandas", "pillow", "polars", "preshed", "propcache", "protobuf", "psutil", "psycopg2-binary", "pyarrow",
    "pycocotools", "pydantic-core", "pynacl", "pyopenjtalk", "python-rapidjson", "pywavelets", "pyworld", "pyyaml", "pyzmq",
    "rapidfuzz", "regex", "rpds-py", "ruamel-yaml-clib", "scikit-image", "scikit-learn", "scipy", "sentencepiece", "shapely",
    "simplejson", "soundfile", "soxr", "spacy", "sqlalchemy", "srsly", "statsmodels", "tensorflow", "thinc", "tiktoken",
    "tree-sitter", "ujson", "uvloop", "watchfiles", "websockets", "wrapt", "xxhash", "yarl", "zstandard",
)  # fmt: skip


def update(folder: Path, request: Request) -> Update:
    """Return the new text of the table; see :data:`scripts.refresh.updates.Kind`."""
    old = load(folder / WHEELS, COLUMNS, ("package", "first"))
    wanted = [name for name in COMPILED if name in request.packages]
    rows: dict[tuple[str, ...], Row] = {key: row for key, row in old.items() if key[0] not in wanted}
    unread = []
    with ThreadPoolExecutor(THREADS) as pool:
        for name, found in zip(wanted, pool.map(lambda name: _of(name, request.today), wanted)):
            if isinstance(found, str):
                unread.append(f"{name}: {found}")
                rows |= {key: row for key, row in old.items() if key[0] == name}
            else:
                rows |= {(name, row["first"]): _as_before(old.get((name, row["first"])), row) for row in found}
    known = {key: row for key, row in old.items() if key in rows and row["last"] == rows[key]["last"]}
    text = text_of(rows.values(), COLUMNS, lambda row: (row["package"], Version(row["first"])))
    return Update({WHEELS: text}, tuple(changed(known, rows)), tuple(unread))


def _as_before(old: Row | None, row: Row) -> Row:
    """Return the old row, with its date, if nothing has changed."""
    return old if old is not None and all(old[column] == row[column] for column in ("last", "wheels")) else row


def _of(name: str, today: str) -> list[Row] | str:
    """Return the rows of a package, or why it was not read."""
    try:
        releases = Index().releases(name)
    except UnreadableError as problem:
        return str(problem)
    rows: list[Row] = []
    for release in releases:
        offered = wheels(release)
        if not offered:
            continue
        row = {"package": name, "first": release.version, "last": release.version, "wheels": offered}
        if rows and rows[-1]["wheels"] == offered:
            row = {**rows.pop(), "last": release.version}
        rows.append({**row, "known": "declared", "source": f"the names of the files of {name}", "date": today})
    return rows
