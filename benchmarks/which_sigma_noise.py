"""Which σ? Latin-square models on test puzzles whose givens are partly wrong.

    python benchmarks/which_sigma.py base latin_square --anew
    python benchmarks/which_sigma_noise.py

The same 1500 test puzzles and wrong givens for all models; the answer stays that of the puzzle.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from placecell.store.runs import finished
from placecell.tasks.latin_square.task import LatinSquare
from placecell.train import load_model, make_task
from which_sigma import settings_of

NOISE = [0.0, 0.02, 0.05, 0.1, 0.2]


def main() -> None:
    setting = next(s for s in settings_of("base") if s.world == "latin_square")
    configs = [c for c in setting.configs() if finished(setting.folder / c.name)]
    configs.sort(key=lambda c: (c.encoding.sigma is None, c.encoding.sigma or 0))
    given = {}
    for noise in NOISE:
        data = replace(configs[0].data, noise=noise)
        given[noise] = make_task(replace(configs[0], data=data)).splits()["test"]
    right: dict[str, list[list[float]]] = {}
    for config in configs:
        _, task, model = load_model(setting.folder / config.name)
        assert isinstance(task, LatinSquare)
        learned = config.encoding.name == "learnable"
        name = f"σ = {config.encoding.sigma:g}" if learned else f"{config.encoding.name} 2D"
        scores = []
        for noise in NOISE:
            puzzles = given[noise]
            with torch.no_grad():
                answers = model(puzzles.inputs(task.positions)).outputs[:, 0].argmax(-1)
            scores.append(float((answers == puzzles.targets[:, 0]).double().mean()))
        right.setdefault(name, []).append(scores)
    print("| |", " | ".join(f"{noise:g}" for noise in NOISE), "|")
    for name, by_seed in right.items():
        mean, (low, high) = np.mean(by_seed, 0), (np.min(by_seed, 0), np.max(by_seed, 0))
        cells = [
            f"{100 * m:.1f} ({100 * a:.1f} to {100 * b:.1f})"
            for m, a, b in zip(mean, low, high, strict=True)
        ]
        print(f"| {name} |", " | ".join(cells), f"| {len(by_seed)} seeds")


if __name__ == "__main__":
    main()
