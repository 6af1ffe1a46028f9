"""Does the doctor find the position tables of timm? One model of every module of timm.

    python benchmarks/timm_modules.py [PART PARTS]     # about ten minutes on one core; or a part

For each module the first of its smaller models is built without weights and examined with noise. A
table is expected where a parameter with two axes or more has a name that timm gives to position
tables; tables found beyond these are listed as extra. The last line sums up.
"""

from __future__ import annotations

import re
import sys
import time
import warnings
from typing import Any

import torch

import placecell
from wild import torchvision_operators

NAMES = re.compile(
    r"(^|\.)(pos_embed(_?\w+)?|patch_pos|pixel_pos|relative_position_bias_table|rel_pos_[hw]|"
    r"rel_pos|(height|width)_rel|attention_biases|attention_bias_table|pos_embed_\d|pos_emb|"
    r"positional_embedding|absolute_pos_embed|pos_embed_win|rel_pos_bias|bias_table)(\.pos_emb)?$"
)
SMALLER = re.compile(r"(test|atto|femto|pico|nano|tiny|micro|xxs|_xs|mini|small|_s_|18|_0|b0)")
LARGEST = 120e6  # parameters


def choose(names: list[str]) -> str:
    """Return the first of the smaller models of a module."""
    usual = [n for n in names if not re.search(r"large|huge|giant|384|448|512|so400m", n)] or names
    return next((n for n in sorted(usual) if SMALLER.search(n)), sorted(usual)[0])


def expected(model: Any) -> set[str]:
    """Return the names of parameters that timm calls position tables."""
    return {
        name
        for name, p in model.named_parameters()
        if NAMES.search(name) and sum(size > 1 for size in p.shape) > 1
    }


def main() -> None:
    warnings.filterwarnings("ignore")
    library = torchvision_operators()
    import timm
    from timm.models._registry import _module_to_models

    torch.set_num_threads(1)
    part, parts = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (0, 1)
    wanted = found_of_wanted = extras = models = 0
    for module in sorted(_module_to_models)[part::parts]:
        name = choose(sorted(_module_to_models[module]))
        with torch.device("meta"):
            size = sum(p.numel() for p in timm.create_model(name).parameters())
        if size > LARGEST:
            print(f"{module}: {name} is left out, {size / 1e6:.0f} million parameters", flush=True)
            continue
        model = timm.create_model(name)
        image = torch.randn(1, *model.pretrained_cfg["input_size"])
        start = time.perf_counter()
        tables = placecell.find_tables(model, image)
        seconds = time.perf_counter() - start
        truth, found = expected(model), {t.name for t in tables if t.exercised}
        wanted, models = wanted + len(truth), models + 1
        found_of_wanted, extras = found_of_wanted + len(truth & found), extras + len(found - truth)
        missed, extra = sorted(truth - found)[:3], sorted(found - truth)[:3]
        words = f"{module}: {name}, {len(truth & found)} of {len(truth)} tables, {seconds:.1f} s"
        print(words, *(f"missed {m}" for m in missed), *(f"extra {e}" for e in extra), flush=True)
    print(f"{models} models: {found_of_wanted} of {wanted} tables found, {extras} extra")
    del library


if __name__ == "__main__":
    main()
