"""A sweep from Python with two worker processes."""

from placecell import RunConfig, Store
from placecell.sweep import grid, local, sweep

base = RunConfig.from_dict(
    {
        "task": "latin_square",
        "data": {"n_train": 200, "n_test": 100},
        "model": {"width": 16, "depth": 2},
        "train": {"steps": 20, "eval_every": 10},
    }
)

if __name__ == "__main__":
    configs = grid(base, [{"encoding": "learnable"}], {"sigma": [0.1, 2.0]}, seeds=2)
    print(sweep(configs, "runs/python", local(2)))  # local(0): in this process
    store = Store("runs/python")
    runs, points = store.runs(), store.points()  # one row per run, one row per measurement
    print(runs["encoding.sigma"], runs["test/accuracy"], len(points["value"]))
