"""
The doctor, before and after training
=====================================

A torch model of one's own with learnable positions: how large is its table beside the tokens, and
what can be read from it after training?
"""

# %%
# An encoder with two ``nn.Embedding``, one for 12 symbols and one for 32 positions.

import torch
from matplotlib import pyplot as plt
from torch import nn
from torch.nn.functional import cross_entropy

import placecell
from placecell.analysis import row_similarity


class Reader(nn.Module):
    """Tokens (b n) to a score for each symbol at each place (b n 12)."""

    def __init__(self, d: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(12, d)
        self.positions = nn.Embedding(32, d)
        layer = nn.TransformerEncoderLayer(
            d, 4, 2 * d, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(d, 12)

    def forward(self, x):
        places = torch.arange(x.shape[1])
        return self.out(self.encoder(self.tokens(x) + self.positions(places)))


# %%
# Its data are 16 symbols that go up by 0 or 1 at each step, a quarter of them hidden (symbol 11)
# and to be predicted.


def batch(generator, b=64, n=16):
    start = torch.randint(0, 11, (b, 1), generator=generator)
    walk = (start + torch.randint(0, 2, (b, n), generator=generator).cumsum(1)) % 11
    hidden = torch.rand(b, n, generator=generator) < 0.25
    return walk.masked_fill(hidden, 11), walk, hidden


def train(model, steps=300):
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _step in range(steps):
        x, walk, hidden = batch(generator)
        loss = cross_entropy(model(x)[hidden], walk[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x, walk, hidden = batch(torch.Generator().manual_seed(99), b=512)  # new samples
    with torch.no_grad():
        return cross_entropy(model(x)[hidden], walk[hidden]).item()


tokens, _, _ = batch(torch.Generator().manual_seed(5), b=32)

# %%
# As PyTorch builds it, half of what enters the network is position: ρ is about 0.5.

torch.manual_seed(0)
as_built = Reader()
print(placecell.doctor(as_built, tokens))

# %%
# The same model with positions that start as a twentieth of what enters:

torch.manual_seed(0)
small = Reader()
print(*placecell.init_(small, tokens, rho=0.05))

# %%
# Both are trained alike and end with about the same loss.

losses = {"as built": train(as_built), "ρ = 0.05": train(small)}
print(losses)

# %%
# But only one of the tables can be read. The doctor recovers the order of its places blindly, and
# sees that its rows from 16 on were never used.

print(placecell.doctor(small, tokens))

# %%
# The similarity of the rows shows it at a glance: rows of neighbouring places are alike in the
# table that started small.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for axis, (name, model) in zip(
    axes, (("as built, σ = 1", as_built), ("started at ρ = 0.05", small)), strict=True
):
    similarity = row_similarity(model.positions.weight.detach().numpy())
    image = axis.imshow(similarity, cmap="RdBu_r", vmin=-1, vmax=1)
    axis.set(title=name, xlabel="position", ylabel="position")
figure.colorbar(image, ax=axes, label="similarity of rows")
plt.show()
