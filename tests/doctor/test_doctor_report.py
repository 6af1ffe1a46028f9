"""What the doctor measures and says, against values known otherwise."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import placecell
from placecell.doctor.compare import against
from placecell.doctor.measure import share_of_logits
from placecell.errors import InputError

sys.path.insert(0, str(Path(__file__).parent))
from handmade import HANDMADE, IDS, Decoder, Embedded, Handmade


class Plain(nn.Module):
    """Tokens of a known scale, a table of a known scale, and a readout."""

    def __init__(self, sigma: float, tokens: float = 1.0, rows: int = 64) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.tokens = nn.Parameter(torch.randn(500, 64, generator=generator) * tokens)
        self.pos = nn.Parameter(torch.randn(rows, 64, generator=generator) * sigma)
        self.head = nn.Linear(64, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.tokens[ids] + self.pos[: ids.shape[1]])


MANY = torch.randint(0, 500, (16, 64), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("sigma", "tokens"), [(1.0, 1.0), (0.1, 1.0), (0.02, 0.02), (2.0, 0.5)])
@pytest.mark.parametrize("batch", [16, 1])
def test_share_of_position(sigma: float, tokens: float, batch: int) -> None:
    share = placecell.share_of_position(Plain(sigma, tokens), MANY[:batch])
    assert share["pos"] == pytest.approx(sigma**2 / (sigma**2 + tokens**2), rel=0.1)


def test_a_model_without_a_table_has_no_share() -> None:
    model = nn.Sequential(nn.Embedding(500, 8), nn.Linear(8, 4))
    with pytest.raises(InputError, match="Sequential has no table of positions"):
        placecell.share_of_position(model, MANY)


def test_an_addition_that_scales() -> None:
    class Halved(Plain):
        def forward(self, ids: Tensor) -> Tensor:
            return self.head(torch.add(self.tokens[ids], self.pos[: ids.shape[1]], alpha=0.5))

    built = placecell.doctor(Halved(1.0), MANY)["pos"].built
    assert built is not None
    assert built.sigma == pytest.approx(0.5, rel=0.05)
    assert built.rho == pytest.approx(0.2, rel=0.1)


def test_the_doctor_and_calibrate_mean_the_same_share() -> None:
    """Also of tokens that share a constant: the network sees it beside the table too."""
    model = Plain(0.1)
    with torch.no_grad():
        model.tokens += 2.0
    share = placecell.share_of_position(model, MANY)["pos"]
    assert share == pytest.approx(placecell.position_share(model.pos, model.tokens[MANY]), rel=0.05)
    assert share == pytest.approx(0.01 / (0.01 + 1 + 2.0**2), rel=0.1)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.9])
def test_share_of_logits(share: float) -> None:
    generator = torch.Generator().manual_seed(0)
    same = torch.randn(1, 4, 24, 24, generator=generator) * math.sqrt(share)
    other = torch.randn(8, 4, 24, 24, generator=generator) * math.sqrt(1 - share)
    logits = (same + other).masked_fill(torch.ones(24, 24).triu(1).bool(), float("-inf"))
    assert share_of_logits([logits], 8) == pytest.approx(share, abs=0.03)
    halves = [logits[:4].flatten(0, 1), logits[4:].flatten(0, 1)]
    assert share_of_logits(halves, 4) == pytest.approx(share, abs=0.03)


def whats(report: placecell.doctor.Report) -> set[str]:
    return {finding.what for finding in report.findings}


def test_findings() -> None:
    assert whats(placecell.doctor(Plain(0.5), MANY)) == {"untrained"}
    assert whats(placecell.doctor(Plain(0.01), MANY)) == {"untrained", "share below 0.01"}
    assert whats(placecell.doctor(Plain(5.0), MANY)) == {"untrained", "share above 0.9"}
    zero = Plain(0.0)
    assert whats(placecell.doctor(zero, MANY)) == {"zero"}
    zero.pos.requires_grad_(False)
    assert whats(placecell.doctor(zero, MANY)) == {"zero and frozen"}
    fixed = Plain(0.5)
    fixed.pos.requires_grad_(False)
    assert whats(placecell.doctor(fixed, MANY)) == {"frozen", "untrained"}


def test_an_unusual_share_stands_beside_the_wild() -> None:
    report = placecell.doctor(Plain(5.0), MANY)
    assert len(report.wild) >= 4
    assert [line.rho for line in report.wild] == sorted(line.rho for line in report.wild)
    assert report.wild[0].model in str(report)
    assert placecell.doctor(Plain(0.5), MANY).wild == ()


def test_a_trained_table_and_rows_that_were_never_trained() -> None:
    model = Plain(0.02, rows=128)
    walk = torch.randn(80, 64, generator=torch.Generator().manual_seed(2)).cumsum(0) * 0.02
    with torch.no_grad():
        model.pos[:80] += walk
    report = placecell.doctor(model, MANY)
    table = report["pos"]
    assert table.trained == "partly trained"
    assert abs((table.untrained_from or 0) - 80) <= 2
    assert table.structure is not None
    assert table.structure.layout == (table.untrained_from,)
    assert table.structure.structured
    assert "rows never trained" in whats(report)


def test_where_norms_stand() -> None:
    decoder = placecell.doctor(Decoder(), IDS).tables[0].built
    assert decoder is not None
    assert decoder.norm == "in the branch"

    class Normed(Embedded):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(32)

        def forward(self, ids: Tensor) -> Tensor:
            return self.body(self.norm(self.place(self.tokens(ids), ids)))

    built = placecell.doctor(Normed(), IDS).tables[0].built
    assert built is not None
    assert built.norm == "on the sum"
    plain = placecell.doctor(Plain(0.1), MANY).tables[0].built
    assert plain is not None
    assert plain.norm == "none"


def test_weight_decay_of_the_optimizer() -> None:
    model = Plain(0.5)
    decayed = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    report = placecell.doctor(model, MANY, optimizer=decayed)
    assert report["pos"].decay == 0.1
    assert "decayed" in whats(report)
    groups = placecell.param_groups(model, MANY, weight_decay=0.1)
    report = placecell.doctor(model, MANY, optimizer=torch.optim.AdamW(groups))
    assert report["pos"].decay == 0.0
    assert "decayed" not in whats(report)


def test_against_a_reference() -> None:
    generator = torch.Generator().manual_seed(0)
    before = torch.randn(40, 16, generator=generator)
    after = before.clone()
    after[:10] += torch.randn(10, 16, generator=generator)
    after[10:30] *= 0.95
    found = against(after, before)
    assert (found.unchanged, found.unchanged_from) == (10, 30)
    assert (found.decayed, found.decayed_from) == (20, 10)
    assert found.shrink == pytest.approx(0.95)
    model, reference = Plain(0.5), Plain(0.5)
    with torch.no_grad():
        model.pos[:50] += 1
    report = placecell.doctor(model, MANY, reference=reference)
    assert report["pos"].against is not None
    assert report["pos"].against.unchanged == 14
    assert "unchanged rows" in whats(report)


class Reads(nn.Module):
    """Says where a token stands, by its position alone: it cannot do without its table."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50, 16)
        self.pos = nn.Parameter(torch.eye(16))
        self.used = True
        nn.init.zeros_(self.tokens.weight)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.pos[: ids.shape[1]]
        return 10 * x if self.used else 0 * x


def test_what_positions_are_worth() -> None:
    def loss(output: Tensor) -> Tensor:
        where = torch.arange(16).expand(len(output), -1)
        return nn.functional.cross_entropy(output.flatten(0, 1), where.flatten())

    model = Reads()
    before = model.pos.detach().clone()
    costs = placecell.doctor(model, IDS, loss=loss)["pos"].costs
    assert costs is not None
    assert costs.intact < 0.01
    assert costs.shuffled > 5
    assert costs.shifted > 5
    assert costs.averaged == pytest.approx(math.log(16), rel=0.01)
    assert torch.equal(model.pos, before)
    model.used = False
    assert "unused" in whats(placecell.doctor(model, IDS, loss=loss))
    both = placecell.doctor(model, IDS, loss=lambda m, example: loss(m(example)))
    assert "unused" in whats(both)


def test_report_as_dict_text_and_page() -> None:
    model = nn.ModuleDict({"<b>": Plain(0.02)})

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, ids: Tensor) -> Tensor:
            return self.inner["<b>"](ids)

    report = placecell.doctor(Outer(), MANY)
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["tables"][0]["name"] == "inner.<b>.pos"
    assert plain["tables"][0]["built"]["sigma"] == pytest.approx(0.02, rel=0.1)
    assert {f["what"] for f in plain["findings"]} == whats(report)
    assert "inner.<b>.pos" in str(report)
    for page in (report.html(), report._repr_html_()):
        assert "<b>.pos" not in page
        assert "&lt;b&gt;.pos" in page
        assert "data:image/png;base64," in page
        assert "<svg" in page
        assert "http" not in page
        assert "<script" not in page


def test_a_grid_is_seen_in_a_table_of_patches() -> None:
    made = HANDMADE["class token, registers"]
    model = made.model()
    where = torch.stack(torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij"), -1)
    maps = torch.randn(2, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.pos[0, 1:] += where.reshape(16, 2) @ maps
    table = placecell.doctor(model, made.example)["pos"]
    assert table.structure is not None
    assert table.structure.layout == (4, 4)
    assert table.trained == "trained"
    assert table.structure.position_r2 > 0.9


def test_nothing_to_examine() -> None:
    made: Handmade = HANDMADE["no positions"]
    report = placecell.doctor(made.model(), made.example)
    assert (report.tables, report.findings) == ((), ())
    assert "no position table" in str(report)
    assert "no position table" in report.html()
    rotary = placecell.doctor(HANDMADE["rotary"].model(), HANDMADE["rotary"].example)
    assert "rotary" in str(rotary)


def test_the_picture_is_a_png_of_the_similarities() -> None:
    from placecell.doctor.page import _png

    pixels = np.zeros((3, 5, 3), dtype=np.uint8)
    content = _png(pixels)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert content[16:24] == b"\0\0\0\5\0\0\0\3"  # width and height
