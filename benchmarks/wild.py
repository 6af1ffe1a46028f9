"""How libraries build their position tables: writes docs/wild.md and the doctor's own table.

Every model is built from its library's default configuration (fewer layers, so that it is quick:
tables and patch embeddings are as large as in the original) without trained weights, and measured
by `placecell.doctor` on random tokens or noise images.

    python benchmarks/wild.py            # about two minutes on one core
    python benchmarks/wild.py timm Swin  # only models whose names have one of these words anew
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import placecell
from placecell.doctor import Report

ROOT = Path(__file__).parents[1]
PAGE, DATA = ROOT / "docs" / "wild.md", ROOT / "src" / "placecell" / "doctor" / "wild.json"
IDS = torch.randint(5, 2000, (8, 48), generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(4, 3, 224, 224, generator=torch.Generator().manual_seed(1))
BOTH = {"input_ids": IDS, "decoder_input_ids": IDS.flip(1)}

Build = Callable[[], tuple[Any, Any]]


def torchvision_operators() -> Any:
    """Define what a torchvision built for CUDA looks for beside a CPU torch."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        try:
            library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
        except RuntimeError:
            return library
    return library


def hf(name: str, example: Any, model: str = "Model", **config: Any) -> Build:
    def build() -> tuple[Any, Any]:
        import transformers

        made = getattr(transformers, f"{name}Config")(**config)
        return getattr(transformers, f"{name}{model}")(made), example

    return build


def timm_model(name: str, **options: Any) -> Build:
    def build() -> tuple[Any, Any]:
        import timm

        return timm.create_model(name, pretrained=False, **options), IMAGES

    return build


def x_text() -> tuple[Any, Any]:
    import x_transformers as module

    layers = module.Decoder(dim=512, depth=1, heads=8)
    model = module.TransformerWrapper(num_tokens=2000, max_seq_len=512, attn_layers=layers)
    return model, IDS


def x_image() -> tuple[Any, Any]:
    import x_transformers as module

    layers = module.Encoder(dim=512, depth=1, heads=8)
    return module.ViTransformerWrapper(image_size=224, patch_size=16, attn_layers=layers), IMAGES


def vit_pytorch() -> tuple[Any, Any]:
    import vit_pytorch as module

    sizes = {"image_size": 224, "patch_size": 16, "num_classes": 10, "mlp_dim": 1024}
    return module.ViT(dim=512, depth=1, heads=8, **sizes), IMAGES


def open_clip() -> tuple[Any, Any]:
    import open_clip as module

    text = {"context_length": 48, "vocab_size": 2000, "width": 512, "heads": 8, "layers": 1}
    seen = {"layers": 1, "width": 768, "patch_size": 16, "image_size": 224}
    return module.model.CLIP(512, seen, text), (IMAGES, IDS[:4])


SMALL = {"num_hidden_layers": 1}
MODELS: dict[str, Build] = {
    "transformers GPT-2": hf("GPT2", IDS, n_layer=1, vocab_size=2000),
    "transformers OPT": hf("OPT", IDS, vocab_size=2000, **SMALL),
    "transformers BERT": hf("Bert", IDS, vocab_size=2000, **SMALL),
    "transformers RoBERTa": hf("Roberta", IDS, vocab_size=2000, **SMALL),
    "transformers BART": hf("Bart", BOTH, vocab_size=2000, encoder_layers=1, decoder_layers=1),
    "transformers T5": hf("T5", BOTH, vocab_size=2000, num_layers=1),
    "transformers Whisper": hf(
        "Whisper",
        {"input_features": torch.randn(4, 80, 3000), "decoder_input_ids": IDS[:4]},
        encoder_layers=1,
        decoder_layers=1,
    ),
    "transformers ViT": hf("ViT", IMAGES, **SMALL),
    "transformers DeiT": hf("DeiT", IMAGES, **SMALL),
    "transformers BEiT": hf("Beit", IMAGES, use_relative_position_bias=True, **SMALL),
    "transformers DINOv2": hf("Dinov2", IMAGES, image_size=224, patch_size=14, **SMALL),
    "transformers CLIP text": hf("CLIPText", IDS, vocab_size=2000, **SMALL),
    "transformers CLIP vision": hf("CLIPVision", IMAGES, **SMALL),
    "transformers SigLIP vision": hf("SiglipVision", IMAGES, **SMALL),
    "transformers AST": hf("AST", torch.randn(2, 1024, 128), **SMALL),
    "transformers ViTMAE": hf("ViTMAE", IMAGES, "ForPreTraining", **SMALL),
    "transformers Swin": hf("Swin", IMAGES, depths=[1, 1], num_heads=[3, 6]),
    "timm ViT": timm_model("vit_base_patch16_224", depth=1),
    "timm DeiT III": timm_model("deit3_base_patch16_224", depth=1),
    "timm BEiT": timm_model("beit_base_patch16_224", depth=1),
    "timm Swin": timm_model("swin_tiny_patch4_window7_224", depths=(1, 1), num_heads=(3, 6)),
    "x-transformers text": x_text,
    "x-transformers ViT": x_image,
    "vit-pytorch ViT": vit_pytorch,
    "open_clip": open_clip,
}


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


def page(lines: list[dict[str, Any]], versions: str) -> str:
    def cell(value: Any) -> str:
        return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)

    head = "| model, as its library builds it | table | kind | state | σ where it acts | beside | "
    head += "share ρ | share of logits |\n|---|---|---|---|---|---|---|---|\n"
    keys = ("model", "table", "kind", "state", "sigma", "beside", "rho", "logits")
    rows = "".join(
        "| " + " | ".join(cell(line[key]) for key in keys).replace("|  |", "| – |") + " |\n"
        for line in lines
    )
    return INTRODUCTION.format(versions=versions) + head + rows


INTRODUCTION = """# Position tables in the wild

How libraries build the position tables of their models, before any training. `make wild` (that is
`python benchmarks/wild.py`) makes this page with {versions}.

Each model has its library's default configuration with one layer, no trained weights, random
tokens or noise images. *σ where it acts* is the standard deviation of what is added, *beside* the
root mean square of what it is added to, *share ρ* the table's variance over positions divided by
that plus the mean square of what it is added to, *share of logits* the part of the first
attention's logits (variance) that is the same whatever the tokens are. Of tables that are alike
only the first is listed. [What the words mean](doctor.md).

"""


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
    DATA.write_text(json.dumps(lines, indent=1, ensure_ascii=False) + "\n")
    del library


if __name__ == "__main__":
    main()
