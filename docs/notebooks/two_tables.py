"""
A small and a large start: two tables
=====================================

Two transformers learn the same Latin-square puzzles. They differ in one number: σ, the standard
deviation of their table of positions before training.
"""

# %%
# The puzzles are 4 × 4 Latin squares of the easiest kinds. The 16 cells are 16 tokens, and nothing
# tells the model that they form a grid.

import tempfile

import numpy as np
from matplotlib import pyplot as plt

import placecell
from placecell.analysis import row_similarity
from placecell.train import load_snapshots

base = placecell.preset("latin_square").override(
    {
        "conditions": ["1v1s", "2v1s"],
        "n_train": 2000,
        "n_test": 300,
        "width": 32,
        "depth": 2,
        "norm": "pre",
        "optimizer": "muon",
        "lr": 1.2e-2,
        "steps": 300,
        "warmup": 20,
    }
)
runs = tempfile.mkdtemp()
results = {sigma: placecell.run(base.override({"sigma": sigma}), runs) for sigma in (0.1, 2.0)}
for sigma, result in results.items():
    print(f"σ = {sigma:g}: {result.final('test', 'accuracy'):.1%} of new puzzles")

# %%
# Both solve these easy puzzles. Now their tables: one small map for each cell of the grid, which
# shows how similar the cell's row of the table is to the rows of all other cells (red alike, blue
# unlike, dark the cell itself). At σ = 0.1 every small map shows the cross of its row and column;
# at σ = 2 there is nothing to see.

colours = plt.get_cmap("RdBu_r").with_extremes(bad="0.2")


def draw(axes, table):
    similarity = row_similarity(table)
    np.fill_diagonal(similarity, np.nan)  # the cell itself
    for cell, axis in enumerate(axes.flat):
        axis.imshow(similarity[cell].reshape(4, 4), cmap=colours, vmin=-0.4, vmax=0.4)
        axis.set(xticks=[], yticks=[])


figure = plt.figure(figsize=(8, 4.3))
for panel, (sigma, result) in zip(figure.subfigures(1, 2), results.items(), strict=True):
    panel.suptitle(f"started at σ = {sigma:g}")
    draw(panel.subplots(4, 4), result.table.numpy())

# %%
# The table was kept along training, at steps 0, 1, 2, 4 and so on. When does it become a map? Here
# is the correlation of its similarities with "shares a row or a column".

row, column = np.divmod(np.arange(16), 4)
shares = (row[:, None] == row) | (column[:, None] == column)
others = ~np.eye(16, dtype=bool)

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for sigma, result in results.items():
    tables = load_snapshots(result.folder)
    curve = [
        np.corrcoef(row_similarity(table.numpy())[others], shares[others])[0, 1]
        for table in tables.values()
    ]
    axis.plot([max(step, 0.5) for step in tables], curve, marker="o", label=f"σ = {sigma:g}")
axis.set(xscale="log", xlabel="training step", ylabel="correlation with the grid")
axis.legend()
plt.show()
