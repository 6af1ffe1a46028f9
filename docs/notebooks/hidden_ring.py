"""
The hidden map of a table
=========================

Eight tide gauges stand around an island, and the table that they fill does not say where. Which
gauge is next to which?
"""

# %%
# The sea at a gauge is the weather on both of its sides, and noise. Columns stand in the order of
# the alphabet; one more column, ``dice``, has nothing to do with the sea. The table is made up, so
# that the answer is known.

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from placecell import PlaceMap

GAUGES = ["quay", "cove", "reef", "spit", "head", "bank", "weir", "dune"]  # around the island
rng = np.random.default_rng(0)
weather = rng.normal(size=(300, 8))
sea = weather + np.roll(weather, 1, axis=1) + 0.5 * rng.normal(size=(300, 8))
table = pd.DataFrame(sea, columns=GAUGES)[sorted(GAUGES)]
table["dice"] = rng.normal(size=300)
print(table.head().round(1))

# %%
# First the answer of a test, on rows that were used for nothing else.

found = PlaceMap(steps=50, random_state=0).fit(table)
print("found" if found.found_ else "nothing found", f"p = {found.p_value_:.1g}", found.readout_)

# %%
# Then the map. The grey line joins the gauges as they truly stand.

places = dict(zip(found.column_names_, found.embedding_, strict=True))
ring = np.array([places[name] for name in [*GAUGES, GAUGES[0]]])
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
axis.plot(*ring.T, color="0.8", zorder=0)
for name, (x, y) in places.items():
    axis.scatter(x, y, color="tab:orange" if name == "dice" else "tab:blue")
    axis.annotate(name, (x, y), xytext=(5, 5), textcoords="offset points")
axis.margins(0.15)
axis.set(title="the map that was found", aspect="equal", xticks=[], yticks=[])
plt.show()

# %%
# The same as a table, a row for each column.

found.columns().to_frame().round(2)
