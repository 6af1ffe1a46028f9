"""How libraries build their position tables: writes docs/wild.md, its picture and what the doctor
compares with.

Every model of `wild_models.py` is built without trained weights and measured by `placecell.doctor`
on random tokens or noise images.

    python benchmarks/wild.py            # about two minutes on one core
    python benchmarks/wild.py timm Swin  # only models whose names have one of these words anew
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from typing import Any

import torch

import placecell
from placecell.doctor import Report
from wild_models import MODELS, torchvision_operators
from wild_page import DATA, PAGE, page, picture


def lines_of(model: str, report: Report) -> list[dict[str, Any]]:
    """Return one line for each table, of tables that are alike only the first."""
    lines, seen = [], set()
    for table in report.tables:
        built = table.built
        if built is None:
            continue
        state = "trainable" if table.table.trainable else "fixed"
        if table.zero:
            state = "zero" if table.table.trainable else "zero and frozen"
        rho = built.rho if math.isfinite(built.rho) else None
        key = (table.table.kind, state, round(built.sigma, 4), round(rho or 0, 4))
        if key not in seen:
            seen.add(key)
            values = {"sigma": built.sigma, "beside": built.beside, "rho": rho}
            rounded = {k: None if v is None else float(f"{v:.3g}") for k, v in values.items()}
            line = {"model": model, "table": table.name, "kind": table.table.kind, "state": state}
            logits = None if not math.isfinite(built.logits) else float(f"{built.logits:.2g}")
            lines.append(line | rounded | {"logits": logits})
    return lines


def main() -> None:
    warnings.filterwarnings("ignore")
    library = torchvision_operators()
    import timm
    import transformers

    transformers.logging.set_verbosity_error()
    wanted = sys.argv[1:]
    lines: list[dict[str, Any]] = []
    for name, build in MODELS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        start = time.perf_counter()
        torch.manual_seed(0)
        model, example = build()
        report = placecell.doctor(model, example)
        lines += lines_of(name, report)
        print(f"{name}: {len(report.tables)} tables, {time.perf_counter() - start:.1f} s")
        for line in lines_of(name, report):
            print("   ", line)
    anew = {line["model"] for line in lines}
    kept = [line for line in json.loads(DATA.read_text()) if line["model"] not in anew]
    order = list(MODELS)
    lines = sorted(lines + kept, key=lambda line: order.index(line["model"]))
    versions = f"transformers {transformers.__version__}, timm {timm.__version__}, "
    versions += f"torch {torch.__version__.split('+')[0]}"
    PAGE.write_text(page(lines, versions))
    picture(lines)
    DATA.write_text(json.dumps(lines, indent=1, ensure_ascii=False) + "\n")
    del library


if __name__ == "__main__":
    main()
