"""A polytope of one's own under frank_wolfe: it hands over its vertices, and sees no un-noised number."""

import numpy as np
import pytest
from scipy import sparse

from skdp import DPConstrainedClassifier
from skdp.constraints import L1Ball
from skdp.losses import Logistic
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Vertex, Vertices

CORNERS = np.array([[3.0, 0.0, 0.5], [-1.0, 1.0, 0.0], [0.0, -2.0, 0.0]])


class Watching:
    """Wraps its vertices in a class that sees what it is multiplied by, and understates their size."""

    def __init__(self, kind, seen, factor=1.0):
        self.kind, self.seen, self.factor = kind, seen, factor

    def project(self, w):
        return w

    def scaled(self, factor):
        return Watching(self.kind, self.seen, self.factor * factor)

    def l1_radius(self, size):
        return 1e-9

    def n_vertices(self, size):
        return len(CORNERS)

    def vertex(self, index, size):
        return CORNERS[index]

    def vertex_scores(self, gradient):
        self.seen.append(gradient)
        return CORNERS @ gradient

    def vertices(self, size):
        seen = self.seen

        class Dense(np.ndarray):
            def __array_ufunc__(self, ufunc, method, *inputs, **options):
                seen.append(inputs)
                return getattr(ufunc, method)(*(np.asarray(value) for value in inputs), **options)

        class Sparse(sparse.csr_array):
            def __matmul__(self, other):
                seen.append(other)
                return super().__matmul__(other)

        made = {"dense": lambda: (self.factor * CORNERS).view(Dense), "sparse": lambda: Sparse(self.factor * CORNERS)}[
            self.kind
        ]()
        seen.clear()
        return made


@pytest.fixture
def table(rng):
    return rng.normal(size=(80, 3)), np.arange(80) % 2


@pytest.mark.parametrize("kind", ("dense", "sparse"))
def test_it_sees_nothing_and_its_size_is_measured(kind, table, monkeypatch):
    seen, sensitivities, ask = [], [], Oracle.ask

    def asked(self, query):
        seen.clear()
        sensitivities.append(query.sensitivity("zero_out") / query.clip_norm)
        answer = ask(self, query)
        assert not seen
        return answer

    monkeypatch.setattr(Oracle, "ask", asked)
    polytope = Watching(kind, seen)
    model = DPConstrainedClassifier(1.0, delta=1e-6, solver="frank_wolfe", constraint=polytope).fit(*table)
    assert sensitivities and min(sensitivities) >= np.abs(CORNERS).sum(axis=1).max()
    assert max(sensitivities) <= np.abs(CORNERS).sum(axis=1).max() * (1 + 1e-12)
    assert not any("unreviewed" in line for line in model.privacy_report_.assumptions)


def test_a_set_that_only_scores_is_refused_with_what_to_do(table):
    class Old(Watching):
        vertices = property()

    seen = []
    with pytest.raises(ValueError, match=r"a method vertices\(p\) that returns them as rows"):
        DPConstrainedClassifier(1.0, solver="frank_wolfe", constraint=Old("dense", seen)).fit(*table)
    assert not seen


def test_a_subclass_of_a_ball_is_asked_for_its_vertices_only(table):
    class Ball(L1Ball):
        def l1_radius(self, size):
            raise AssertionError

        vertex_scores = n_vertices = vertex = l1_radius

    DPConstrainedClassifier(1.0, solver="frank_wolfe", constraint=Ball(2.0)).fit(*table)


@pytest.mark.parametrize(
    "vertices",
    (np.full((2, 3), np.nan), np.full((2, 3), 1e308), np.zeros((0, 3)), np.zeros((2, 2)), np.zeros((2, 2, 3)), "none", None),
    ids=("nan", "overflow", "empty", "narrow", "deep", "text", "nothing"),
)
def test_vertices_that_are_no_table_of_numbers_are_refused_before_anything_is_paid(vertices, table):
    class Bad(Watching):
        def vertices(self, size):
            return vertices

    with pytest.raises(ValueError, match=r"vertices\(3\)"):
        DPConstrainedClassifier(1.0, solver="frank_wolfe", constraint=Bad("dense", [])).fit(*table)


def test_the_query_takes_our_own_vertices_only():
    class Lying(Vertices):
        l1_radius = 1e-9

    zeros = np.zeros((3, 1))
    for vertices in (L1Ball(), CORNERS, Lying(CORNERS), Vertices(np.eye(2))):
        with pytest.raises(PrivacyAccountingError, match="could read un-noised gradients"):
            Vertex(Logistic(), zeros, 1.0, vertices, zeros)


@pytest.mark.parametrize("seed", range(5))
def test_the_measured_radius_is_never_below_the_exact_one(seed):
    """Against long double, for rows whose l1 norms round."""
    table = np.random.default_rng(seed).normal(size=(20, 1000)) * 10.0 ** np.random.default_rng(seed).integers(-9, 9, size=1000)
    exact = np.abs(table.astype(np.longdouble)).sum(axis=1).max()
    for given in (table, sparse.coo_array(table), sparse.csc_array(table)):
        assert exact <= Vertices(given).l1_radius <= exact * (1 + 1e-12)
