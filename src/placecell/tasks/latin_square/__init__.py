"""The Latin Square Task: which symbol goes where the probe is?

Every symbol comes at most once in each row and each column. In this puzzle the probe (cell 0,
marked ``?``) is the only cell whose row and column leave a single symbol: the row has 1 and 2, the
column 2 and 3, so 4 is left. It takes two vectors (the row and the column) and one step::

    ? 1 . 2
    2 . . .
    . . . .
    3 . . .

>>> from placecell.tasks.latin_square import classify, solve
>>> givens = [[0, 1, 0, 2], [2, 0, 0, 0], [0, 0, 0, 0], [3, 0, 0, 0]]
>>> solve(givens, probe=0).tolist()
[False, False, False, True]
>>> kind = classify(givens, probe=0)
>>> int(kind.answer), int(kind.vectors), int(kind.steps)
(4, 2, 1)

Without the 3 below it, 3 and 4 would both be possible, and the answer not unique. Nothing here
imports torch."""

from placecell.tasks.latin_square.boards import (
    Classes,
    canonical,
    check_puzzle,
    classify,
    decode,
    encode,
    solve,
    squares,
)
from placecell.tasks.latin_square.generate import CONDITIONS, Puzzles, generate, nearest, split
from placecell.tasks.latin_square.items import (
    HUMAN_ACCURACY,
    HUMAN_OVERALL,
    Items,
    load_human,
    load_items,
)
from placecell.tasks.latin_square.orders import (
    OrderPuzzles,
    generate_order,
    random_square,
    solve_order,
)

__all__ = [
    "CONDITIONS",
    "HUMAN_ACCURACY",
    "HUMAN_OVERALL",
    "Classes",
    "Items",
    "OrderPuzzles",
    "Puzzles",
    "canonical",
    "check_puzzle",
    "classify",
    "decode",
    "encode",
    "generate",
    "generate_order",
    "load_human",
    "load_items",
    "nearest",
    "random_square",
    "solve",
    "solve_order",
    "split",
    "squares",
]
