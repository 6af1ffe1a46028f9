import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group
from sklearn.decomposition import PCA

from placecell.analysis import picture
from placecell.errors import InputError

COORDS = np.stack(np.divmod(np.arange(16), 4), axis=1).astype(float)


def test_it_is_scikit_learn_s_pca_up_to_sign():
    table = np.random.default_rng(0).normal(size=(16, 10))
    drawn = picture(table, 3)
    pca = PCA(3).fit(table)
    assert np.abs(drawn.coordinates) == pytest.approx(np.abs(pca.transform(table)))
    assert drawn.explained == pytest.approx(pca.explained_variance_ratio_)


def test_signs_are_fixed():
    table = np.random.default_rng(1).normal(size=(16, 10))
    points = picture(table).coordinates
    assert (points[np.abs(points).argmax(axis=0), [0, 1]] > 0).all()
    assert picture(table @ ortho_group.rvs(10, random_state=0)).coordinates == pytest.approx(points)


def test_a_grid_is_drawn_as_the_grid_when_aligned():
    rng = np.random.default_rng(2)
    turned = np.hstack([COORDS, np.zeros((16, 6))]) @ ortho_group.rvs(
        8, random_state=3
    ) + rng.normal(size=8)
    drawn = picture(turned, align_to=COORDS)
    assert drawn.coordinates == pytest.approx(COORDS - 1.5)
    assert drawn.explained == pytest.approx([0.5, 0.5])


def test_aligning_never_stretches():
    rng = np.random.default_rng(3)
    table = rng.normal(size=(16, 5))
    assert pdist(picture(table, align_to=COORDS).coordinates) == pytest.approx(
        pdist(picture(table).coordinates)
    )


def test_a_constant_table_is_one_point():
    drawn = picture(np.ones((5, 3)))
    assert drawn.coordinates == pytest.approx(np.zeros((5, 2)))
    assert drawn.explained == pytest.approx([0, 0])


def test_bad_input():
    with pytest.raises(InputError, match=r"dims: expected 1 to 3 for a table \(5, 3\), found 4"):
        picture(np.ones((5, 3)), 4)
    with pytest.raises(InputError, match=r"align_to: expected shape \(16, 2\), found \(9, 2\)"):
        picture(COORDS, align_to=COORDS[:9])
    with pytest.raises(InputError, match="table: expected finite numbers"):
        picture(COORDS * np.nan)
