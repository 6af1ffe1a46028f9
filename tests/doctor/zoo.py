"""Small configurations of models from other libraries, with the position tables that they have.

torchvision from some registries is built for CUDA and does not import beside a CPU torch, which
takes transformers and timm down with it: the operators that it looks for are defined here first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

_LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
for _operator in ("nms", "qnms"):
    with contextlib.suppress(RuntimeError):  # it is there: torchvision fits this torch
        _LIBRARY.define(f"{_operator}(Tensor boxes, Tensor scores, float threshold) -> Tensor")

Case = tuple[Any, Any, set[str]]  # model, example, names of its tables


def _randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


IDS = torch.randint(5, 95, (2, 12), generator=torch.Generator().manual_seed(0))
PADDED = IDS.clone()
PADDED[0, 8:] = PADDED[1, 5:] = 1
IMAGE = _randn(2, 3, 32, 32)
TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
TEXT |= {"intermediate_size": 64, "max_position_embeddings": 40}
SEEN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SEEN |= {"intermediate_size": 64, "image_size": 32, "patch_size": 8}
TWO: dict[str, Any] = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 100}
TWO |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64}
TWO |= {"decoder_ffn_dim": 64, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
TWO |= {"decoder_start_token_id": 2, "forced_eos_token_id": None}
GPT = {"vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2}
SMALL_GPT = GPT | {"n_embd": 32, "n_layer": 2, "n_head": 4}
CLIP = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
CLIP |= {"intermediate_size": 64}
BOTH = {"input_ids": IDS, "decoder_input_ids": IDS.flip(1)}
POSITIONS = "embeddings.position_embeddings"
WORDS = {f"{POSITIONS}.weight"}
TWO_SIDES = {"encoder.embed_positions.weight", "decoder.embed_positions.weight"}
BIAS = "relative_position_bias.relative_position_bias_table"
T5 = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"


def transformers_or_skip() -> Any:
    """The package transformers; the test skips where it is not installed."""
    return pytest.importorskip("transformers", reason="needs the extra wild")


def transformer(
    name: str, config: dict[str, Any], example: Any, tables: set[str], model: str = "Model"
) -> Callable[[], Case]:
    """A model of transformers, built from its configuration."""

    def build() -> Case:
        transformers = transformers_or_skip()
        made = getattr(transformers, f"{name}Config")(**config)
        return getattr(transformers, f"{name}{model}")(made), example, tables

    return build


def timm_model(name: str, tables: set[str], size: int = 0, **options: Any) -> Callable[[], Case]:
    """A model of timm without weights; with `size` as large as it was published."""

    def build() -> Case:
        timm = pytest.importorskip("timm", reason="needs the extra wild")
        side = size or 32
        more = {} if size else {"img_size": side}
        model = timm.create_model(name, pretrained=False, **more, **options)
        return model, _randn(2, 3, side, side), tables

    return build


def blocks(prefix: str, counts: list[int], name: str) -> set[str]:
    return {
        f"{prefix}{stage}.blocks.{block}.{name}"
        for stage, count in enumerate(counts)
        for block in range(count)
    }


ZOO: dict[str, Callable[[], Case]] = {
    "gpt2": transformer("GPT2", SMALL_GPT, IDS, {"wpe.weight"}),
    "gpt2 of one": transformer("GPT2", SMALL_GPT, IDS[:1], {"wpe.weight"}),
    "openai gpt": transformer(
        "OpenAIGPT",
        {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4},
        IDS,
        {"positions_embed.weight"},
    ),
    "gpt neo": transformer(
        "GPTNeo",
        GPT
        | {"hidden_size": 32, "num_layers": 2, "num_heads": 4}
        | {"attention_types": [[["global", "local"], 1]]},
        IDS,
        {"wpe.weight"},
    ),
    "image gpt": transformer(
        "ImageGPT",
        {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 20},
        IDS,
        {"wpe.weight"},
    ),
    "bert": transformer("Bert", TEXT, IDS, WORDS),
    "bert with segments": transformer(
        "Bert",
        TEXT,
        {"input_ids": IDS, "token_type_ids": (torch.arange(12) > 5).long().expand(2, -1)},
        WORDS,
    ),
    "bert with position_ids": transformer(
        "Bert",
        TEXT,
        {"input_ids": IDS, "position_ids": torch.arange(3, 15).expand(2, -1)},
        WORDS,
    ),
    "roberta padded": transformer(
        "Roberta",
        TEXT,
        {"input_ids": PADDED, "attention_mask": (PADDED != 1).long()},
        WORDS,
    ),
    "albert": transformer("Albert", TEXT | {"embedding_size": 16}, IDS, WORDS),
    "distilbert": transformer(
        "DistilBert",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 100},
        IDS,
        WORDS,
    ),
    "electra": transformer("Electra", TEXT | {"embedding_size": 16}, IDS, WORDS),
    "mpnet": transformer("MPNet", TEXT, IDS, WORDS | {"encoder.relative_attention_bias.weight"}),
    "longformer": transformer(
        "Longformer",
        TEXT | {"attention_window": 4, "max_position_embeddings": 70},
        IDS,
        WORDS,
    ),
    "big bird": transformer("BigBird", TEXT | {"attention_type": "original_full"}, IDS, WORDS),
    "deberta v2": transformer(
        "DebertaV2",
        TEXT
        | {"relative_attention": True, "position_biased_input": False}
        | {"pos_att_type": ["c2p", "p2c"], "max_relative_positions": 16},
        IDS,
        {"encoder.rel_embeddings.weight"},
    ),
    "esm": transformer(
        "Esm",
        TEXT | {"position_embedding_type": "absolute", "pad_token_id": 1, "mask_token_id": 4},
        IDS,
        WORDS,
    ),
    "opt": transformer(
        "OPT",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64}
        | {"vocab_size": 100, "word_embed_proj_dim": 32},
        IDS,
        {"decoder.embed_positions.weight"},
    ),
    "bart": transformer("Bart", TWO, BOTH, TWO_SIDES),
    "marian (sine)": transformer("Marian", TWO, BOTH, TWO_SIDES),
    "t5": transformer(
        "T5",
        {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 64, "vocab_size": 100, "d_kv": 8},
        BOTH,
        {f"encoder.{T5}", f"decoder.{T5}"},
    ),
    "llama (rotary)": transformer("Llama", TEXT, IDS, set()),
    "bloom (alibi)": transformer(
        "Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 100}, IDS, set()
    ),
    "xlnet (computed)": transformer(
        "XLNet",
        {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "vocab_size": 100},
        IDS,
        set(),
    ),
    "vit": transformer("ViT", SEEN, IMAGE, {POSITIONS}),
    "deit": transformer("DeiT", SEEN, IMAGE, {POSITIONS}),
    "dinov2": transformer("Dinov2", SEEN | {"mlp_ratio": 2}, IMAGE, {POSITIONS}),
    "dinov2 with registers": transformer(
        "Dinov2WithRegisters", SEEN | {"mlp_ratio": 2}, IMAGE, {POSITIONS}
    ),
    "vit mae": transformer(
        "ViTMAE",
        SEEN
        | {"decoder_hidden_size": 16, "decoder_num_hidden_layers": 1}
        | {"decoder_num_attention_heads": 2, "decoder_intermediate_size": 32},
        IMAGE,
        {"vit.embeddings.position_embeddings", "decoder.decoder_pos_embed"},
        "ForPreTraining",
    ),
    "beit": transformer(
        "Beit",
        SEEN | {"use_relative_position_bias": True, "use_absolute_position_embeddings": True},
        IMAGE,
        {POSITIONS} | {f"layers.{i}.{BIAS}" for i in range(2)},
    ),
    "swin": transformer(
        "Swin",
        {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "image_size": 32}
        | {"patch_size": 4, "window_size": 4},
        IMAGE,
        blocks("encoder.layers.", [2, 2], f"attention.{BIAS}"),
    ),
    "clip": transformer(
        "CLIP",
        {
            "text_config": CLIP | {"vocab_size": 100, "max_position_embeddings": 20},
            "vision_config": CLIP | {"image_size": 32, "patch_size": 8},
            "projection_dim": 16,
        },
        {"input_ids": IDS, "pixel_values": IMAGE},
        {
            "text_model.embeddings.position_embedding.weight",
            "vision_model.embeddings.position_embedding.weight",
        },
    ),
    "siglip vision": transformer(
        "SiglipVision", SEEN, IMAGE, {"embeddings.position_embedding.weight"}
    ),
    "whisper (sine)": transformer(
        "Whisper",
        TWO | {"max_source_positions": 50, "num_mel_bins": 8},
        {"input_features": _randn(2, 8, 100), "decoder_input_ids": IDS},
        TWO_SIDES,
    ),
    "audio spectrogram": transformer(
        "AST",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
        | {"intermediate_size": 64, "max_length": 64, "num_mel_bins": 32},
        _randn(2, 64, 32),
        {POSITIONS},
    ),
    "wav2vec2 (convolution)": transformer(
        "Wav2Vec2",
        TEXT
        | {"conv_dim": [16, 16], "conv_stride": [5, 2], "conv_kernel": [10, 3]}
        | {"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8}
        | {"num_conv_pos_embedding_groups": 4},
        _randn(2, 800),
        set(),
    ),
    "timm vit": timm_model(
        "vit_tiny_patch16_224", {"pos_embed"}, patch_size=8, embed_dim=32, depth=2, num_heads=4
    ),
    "timm swin": timm_model(
        "swin_tiny_patch4_window7_224",
        blocks("layers.", [2, 2], "attn.relative_position_bias_table"),
        embed_dim=16,
        depths=(2, 2),
        num_heads=(2, 4),
        window_size=4,
    ),
    "timm beit": timm_model(
        "beit_base_patch16_224",
        {f"blocks.{i}.attn.relative_position_bias_table" for i in range(2)},
        patch_size=8,
        embed_dim=32,
        depth=2,
        num_heads=4,
    ),
    "timm cait": timm_model(
        "cait_xxs24_224", {"pos_embed"}, patch_size=8, embed_dim=32, depth=2, num_heads=4
    ),
    "timm resnet": timm_model("resnet10t", set(), size=64),
    "timm mixer": timm_model("mixer_s32_224", set(), size=224),
}


def _x_transformers() -> Case:
    module = pytest.importorskip("x_transformers", reason="needs the extra wild")
    layers = module.Decoder(dim=32, depth=2, heads=4)
    model = module.TransformerWrapper(num_tokens=100, max_seq_len=20, attn_layers=layers)
    return model, IDS, {"pos_emb.emb.weight"}


def _x_transformers_bias() -> Case:
    module = pytest.importorskip("x_transformers", reason="needs the extra wild")
    layers = module.Encoder(dim=32, depth=2, heads=4, rel_pos_bias=True)
    options = {"max_seq_len": 20, "use_abs_pos_emb": False}
    model = module.TransformerWrapper(num_tokens=100, attn_layers=layers, **options)
    return model, IDS, {"attn_layers.rel_pos.relative_attention_bias.weight"}


def _x_transformers_vit() -> Case:
    module = pytest.importorskip("x_transformers", reason="needs the extra wild")
    layers = module.Encoder(dim=32, depth=2, heads=4)
    model = module.ViTransformerWrapper(image_size=32, patch_size=8, attn_layers=layers)
    return model, IMAGE, {"pos_embedding"}


SMALL_VIT = {"image_size": 32, "patch_size": 8, "dim": 32, "depth": 2, "heads": 4}
SMALL_VIT |= {"mlp_dim": 64, "num_classes": 3}


def _vit_pytorch() -> Case:
    module = pytest.importorskip("vit_pytorch", reason="needs the extra wild")
    return module.ViT(**SMALL_VIT), IMAGE, {"pos_embedding"}


def _simple_vit() -> Case:
    module = pytest.importorskip("vit_pytorch", reason="needs the extra wild")
    return module.SimpleViT(**SMALL_VIT), IMAGE, {"pos_embedding"}


def _open_clip() -> Case:
    module = pytest.importorskip("open_clip", reason="needs the extra wild")
    text = {"context_length": 12, "vocab_size": 100, "width": 32, "heads": 4, "layers": 2}
    seen = {"layers": 2, "width": 32, "head_width": 8, "patch_size": 8, "image_size": 32}
    model = module.model.CLIP(16, seen, text)
    return model, (IMAGE, IDS), {"positional_embedding", "visual.positional_embedding"}


ZOO |= {
    "x-transformers decoder": _x_transformers,
    "x-transformers bias": _x_transformers_bias,
    "x-transformers vit": _x_transformers_vit,
    "vit-pytorch": _vit_pytorch,
    "vit-pytorch simple (sine)": _simple_vit,
    "open_clip": _open_clip,
}
