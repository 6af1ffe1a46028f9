"""Tables that other people trained: rows never trained, rows unchanged, rows only decayed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import placecell
from placecell.doctor import Report, examine_tensor

sys.path.insert(0, str(Path(__file__).parent))
from weights import folder


def path(name: str) -> Path:
    file = folder() / f"{name}.bin"
    if not file.exists():
        pytest.skip("needs trained weights: make weights")
    return file


def examine(name: str, reference: str | None = None) -> Report:
    other = path(reference) if reference else None
    return examine_tensor(path(name), "position_embeddings.weight", reference=other)


def test_antiberty_was_never_trained_beyond_its_longest_sequence() -> None:
    report = examine("antiberty")
    (table,) = report.tables
    assert table.untrained_from is not None
    assert abs(table.untrained_from - 211) <= 2
    assert table.values[table.untrained_from :].std() == pytest.approx(0.02, rel=0.01)
    assert table.trained == "partly trained"
    assert "rows never trained" in {f.what for f in report.findings}


def test_rxnmapper_has_no_dead_rows() -> None:
    (table,) = examine("rxnmapper").tables
    assert table.untrained_from == 512
    assert table.trained == "trained"


@pytest.mark.parametrize("name", ["rxnmapper", "rxnfp_bert_ft", "rxnfp_bert_pretrained"])
def test_neighbours_are_alike_in_every_trained_table(name: str) -> None:
    structure = examine(name).tables[0].structure
    assert structure is not None
    assert 0.18 <= structure.neighbours <= 0.94
    assert structure.p < 0.01


def test_rows_that_finetuning_did_not_reach() -> None:
    report = examine("rxnfp_bert_ft_10k_25s", "rxnfp_bert_pretrained")
    beside = report.tables[0].against
    assert beside is not None
    assert (beside.unchanged, beside.unchanged_from) == (110, 402)
    assert "unchanged rows" in {f.what for f in report.findings}


def test_rows_that_only_decayed() -> None:
    report = examine("rxnfp_bert_ft", "rxnfp_bert_pretrained")
    beside = report.tables[0].against
    assert beside is not None
    assert beside.decayed > 0
    assert 1 - beside.shrink == pytest.approx(0.049, abs=0.001)
    assert beside.decayed_from < 512
    assert "decay only" in {f.what for f in report.findings}


def test_a_trained_model_as_a_whole() -> None:
    from zoo import transformers_or_skip

    transformers = transformers_or_skip()
    import torch

    from placecell.doctor import read_checkpoint

    state = read_checkpoint(path("rxnfp_bert_pretrained"))
    rows, width = state["bert.embeddings.word_embeddings.weight"].shape
    layers = 1 + max(int(k.split(".")[3]) for k in state if k.startswith("bert.encoder.layer."))
    config = transformers.BertConfig(
        vocab_size=rows,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=state["bert.encoder.layer.0.intermediate.dense.weight"].shape[0],
    )
    model = transformers.BertModel(config, add_pooling_layer=False)
    own = {k.removeprefix("bert."): v for k, v in state.items() if k.startswith("bert.")}
    missing, _ = model.load_state_dict(own, strict=False)
    assert missing == []
    ids = torch.randint(20, rows, (4, 24), generator=torch.Generator().manual_seed(0))
    table = placecell.doctor(model, ids)["embeddings.position_embeddings.weight"]
    assert table.trained == "trained"
    assert table.built is not None
    assert 0 < table.built.rho < 1
