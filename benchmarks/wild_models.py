"""The models whose position tables `wild.py` measures: how to build each, and what it sees.

Every model has its library's default configuration with fewer layers, so that it is quick: tables
and patch embeddings are as large as in the original.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

IDS = torch.randint(5, 2000, (8, 48), generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(4, 3, 224, 224, generator=torch.Generator().manual_seed(1))
SOUNDS = torch.randn(4, 80, 3000, generator=torch.Generator().manual_seed(2))
SPECTRA = torch.randn(2, 1024, 128, generator=torch.Generator().manual_seed(3))
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
TEXT: dict[str, Build] = {
    "transformers GPT-2": hf("GPT2", IDS, n_layer=1, vocab_size=2000),
    "transformers OPT": hf("OPT", IDS, vocab_size=2000, **SMALL),
    "transformers BERT": hf("Bert", IDS, vocab_size=2000, **SMALL),
    "transformers RoBERTa": hf("Roberta", IDS, vocab_size=2000, **SMALL),
    "transformers BART": hf("Bart", BOTH, vocab_size=2000, encoder_layers=1, decoder_layers=1),
    "transformers T5": hf("T5", BOTH, vocab_size=2000, num_layers=1),
    "transformers CLIP text": hf("CLIPText", IDS, vocab_size=2000, **SMALL),
    "x-transformers text": x_text,
}
PATCHES: dict[str, Build] = {
    "transformers ViT": hf("ViT", IMAGES, **SMALL),
    "transformers DeiT": hf("DeiT", IMAGES, **SMALL),
    "transformers BEiT": hf("Beit", IMAGES, use_relative_position_bias=True, **SMALL),
    "transformers DINOv2": hf("Dinov2", IMAGES, image_size=224, patch_size=14, **SMALL),
    "transformers CLIP vision": hf("CLIPVision", IMAGES, **SMALL),
    "transformers SigLIP vision": hf("SiglipVision", IMAGES, **SMALL),
    "transformers ViTMAE": hf("ViTMAE", IMAGES, "ForPreTraining", **SMALL),
    "transformers Swin": hf("Swin", IMAGES, depths=[1, 1], num_heads=[3, 6]),
    "timm ViT": timm_model("vit_base_patch16_224", depth=1),
    "timm DeiT III": timm_model("deit3_base_patch16_224", depth=1),
    "timm BEiT": timm_model("beit_base_patch16_224", depth=1),
    "timm Swin": timm_model("swin_tiny_patch4_window7_224", depths=(1, 1), num_heads=(3, 6)),
    "x-transformers ViT": x_image,
    "vit-pytorch ViT": vit_pytorch,
    "open_clip": open_clip,
}
SOUND: dict[str, Build] = {
    "transformers Whisper": hf(
        "Whisper",
        {"input_features": SOUNDS, "decoder_input_ids": IDS[:4]},
        encoder_layers=1,
        decoder_layers=1,
    ),
    "transformers AST": hf("AST", SPECTRA, **SMALL),
}
MODELS = TEXT | PATCHES | SOUND
BESIDE_TEXT = {"transformers Whisper": "decoder", "open_clip": "positional_embedding"}


def sees(model: str, table: str) -> str:
    """Return what the tokens beside a table of a model are made of."""
    if model in TEXT or (model in BESIDE_TEXT and table.startswith(BESIDE_TEXT[model])):
        return "text"
    return "images" if model in PATCHES else "sound"
