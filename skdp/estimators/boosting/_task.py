"""Define the task of gradient boosting: an additive model, then trees."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skdp._data_validation import Facts
from skdp._validation import check_class_weight
from skdp.estimators._plan import Plan
from skdp.estimators.additive._bins import bin_effects, bin_places, bins_of
from skdp.estimators.additive._reading import Additive
from skdp.estimators.additive._support import Support
from skdp.estimators.additive._task import AdditiveTask
from skdp.estimators.boosting._rule import LARGEST_RESIDUAL, SLOPE, Rule, least_ratio, rule_of
from skdp.estimators.boosting._trees import Background, ColumnGains, Marginals, Tree, Trees
from skdp.preprocessing._parts import Shares
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.data.bins import EDGES
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import BinCounts, LeafSums, Loss, Query, ResidualSum, SlopeDerivatives, TreeWeight
from skdp.solvers import Problem, SolverResult
from skdp.solvers._standardization import james_stein

PERIODS = 20  # how often the weights of columns are computed from the gains so far; a choice
AVERAGED = 0.5  # share of the trees, the last ones, over which the model is an average; a choice
LARGEST_WEIGHT = 1.5  # of all trees; a choice


@dataclass(frozen=True, kw_only=True)
class Boosted(Additive):
    """Hold the public facts of a fit of trees, and its trees once they are there.

    Parameters
    ----------
    rule : Rule or None, default=None
        Constants of the trees; None if there are none.
    trees : Trees or None, default=None
        The trees of a `SolverResult`.
    weight : float, default=0.0
        Weight of all trees.
    offset : ndarray of shape (n_outputs,) or float, default=0.0
        What is added to all raw predictions, in the units of the solver.
    """

    rule: Rule | None = None
    trees: Trees | None = None
    weight: float = 0.0
    offset: Any = 0.0

    def supported(self, found: Mapping[str, Support]) -> "Boosted":
        """Return the same, with trees that add at bins without records what they add at others."""
        trees = self.trees
        for place, term in enumerate(self.basis.terms):
            if trees is None or (support := found.get(term.names[0])) is None:
                continue
            if support.ends is not None:
                low, high = self.basis.knots_of(term.names[0])[list(support.ends)]
                bins, centres = np.arange(trees.bins.sizes[place]), bin_places(self.basis, term)[: EDGES.size + 1]
                from_low, from_high = (int(np.abs(centres - taken).argmin()) for taken in support.places)
                bins[: centres.size][centres < low] = from_low
                bins[: centres.size][centres > high] = from_high
                trees = trees.like(place, bins)
            elif support.levels is not None:
                weights = support.levels[np.flatnonzero(support.levels.diagonal() == 0)[0]]
                trees = replace(trees, averages={**trees.averages, place: weights})
        return replace(self, trees=trees)


class BoostedTask(AdditiveTask):
    """Task of an additive model that trees follow. Public facts choose all but the columns."""

    interactions: Any = ()
    knots: Any = "auto"
    monotone: Any = None
    of_classes: ClassVar[bool]

    def rule(self, signal: float, n_columns: int) -> Rule | None:
        """Return the constants of the trees, from public facts alone; their releases need a positive delta."""
        return None if self.delta == 0 else rule_of(signal, n_columns, self.of_classes)

    def _share(self, signal: float, n_columns: int) -> float:
        """Return the share of the additive model, which depends on public facts alone."""
        rule = self.rule(signal, n_columns)
        return 1.0 if rule is None else rule.share

    def _problem(self, n_samples: int, n_features: int, loss: Loss, kind: type[Problem] = Problem, **fields: Any) -> Problem:
        problem = super()._problem(n_samples, n_features, loss, kind, **fields)
        additive = Additive.of(problem)
        if not problem.budget.delta:  # trees have Gaussian noise
            return problem
        rule = self.rule(problem.signal_to_noise, len(additive.basis.facts.columns))
        if rule is None:
            return problem
        rule = rule.of_records(problem.n_samples)
        back = rule.releases(bins_of(additive.basis).sizes, loss)
        boosted = Boosted(basis=additive.basis, rule=rule, back=back, share=rule.share)
        return replace(problem, class_weight=None, extra=boosted)  # see `_shift`

    def solved(self, plan: Plan, oracle: Oracle, rng: np.random.Generator) -> SolverResult:
        result, boosted = super().solved(plan, oracle, rng), Boosted.of(plan.problem) if _has_trees(plan) else None
        if boosted is None:
            return result
        boosting = Boosting(plan, oracle, rng, result)
        trees, in_bins, weight = boosting.trees()
        (slope, variance), offset = boosting.slope(weight), boosting.offset(weight)
        found = replace(boosted, trees=trees.scaled(slope * weight), weight=weight, offset=offset, in_bins=in_bins)
        return replace(result.scaled(slope, variance), extra=found)

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        model = super().model(plan, result, facts)
        if not _has_trees(plan):
            return {**model, "trees_": None}
        found = Boosted.of(result)
        assert found.trees is not None
        model["intercept_"] = (
            model["intercept_"] + self._shift(facts) + np.reshape(self.units()[1] * found.offset, np.shape(model["intercept_"]))
        )
        return {**model, "trees_": found.trees.scaled(self.units()[1])}

    def _shift(self, facts: Facts) -> Any:
        """Return what weights of classes add to the intercepts of a model with trees, which is fitted without weights.

        Of all functions, the one of least weighted logistic loss has the log-odds of the classes plus the logarithm of the ratio
        of their weights. So public weights cost no signal, and change no query.
        """
        if not (given := check_class_weight(getattr(self, "class_weight", None), facts.classes)):
            return 0.0
        logarithms = np.log([given.get(label, 1.0) for label in facts.labels])
        return logarithms[1] - logarithms[0] if len(logarithms) == 2 else logarithms - logarithms.mean()

    def solver_title(self, plan: Plan) -> str:
        title = super().solver_title(plan)
        return title if plan.problem.extra.back is None else f"additive model by {title}; then random trees"

    def outlook(self, plan: Plan) -> str:
        problem = plan.problem
        if plan.problem.extra.back is not None or not problem.budget.delta:
            return ""
        enough = least_ratio(len(Additive.of(problem).basis.facts.columns), self.of_classes) / problem.signal_to_noise
        return f"; trees need about {float(f'{problem.n_samples * enough:.2g}'):,.0f} records at this epsilon"

    def described(self, plan: Plan) -> dict[str, Any]:
        if not _has_trees(plan):
            return {**super().described(plan), "trees": f"none, but an additive model alone: {self._why(plan)}"}
        rule = Boosted.of(plan.problem).rule
        assert rule is not None
        words = f"{rule.n_trees} of depth {rule.depth}, after an additive model with {rule.share:.0%} of the squared budget"
        return {**super().described(plan), "trees": f"{words}; {self._why(plan)}"}

    def _why(self, plan: Plan) -> str:
        """Return what decides whether there are trees, in words."""
        problem = plan.problem
        if not problem.budget.delta:
            return "with delta=0 there is no Gaussian noise, which trees need"
        ratio, n_columns = (
            problem.signal_to_noise / np.sqrt(problem.extra.share),
            len(Additive.of(problem).basis.facts.columns),
        )
        least = least_ratio(n_columns, self.of_classes)
        return f"the signal-to-noise ratio is {ratio:.4g}, and trees need {least:.4g} for {n_columns} columns"

    def left_out(self, plan: Plan) -> str:
        others = super().left_out(plan)
        if _has_trees(plan):
            return others
        more = "a positive delta" if self.delta == 0 else "more records, a larger epsilon or fewer columns"
        kind = "Classifier" if self.of_classes else "Regressor"
        return (
            f"No trees will be fitted, but an additive model alone: {self._why(plan)}. Use {more}; DPAdditive{kind} if "
            f"that model is what you want; or DPTabular{kind}, which chooses by this ratio. plan tells you this before a fit. "
            f"{others}"
        ).rstrip()


class Boosting:
    """Adds trees to the scores of the records behind the oracle.

    Parameters
    ----------
    plan : Plan
        The fit.
    oracle : Oracle
        Has answered the queries of the additive model.
    rng : Generator
        For the trees, which are public.
    additive : SolverResult
        The released additive model.
    """

    def __init__(self, plan: Plan, oracle: Oracle, rng: np.random.Generator, additive: SolverResult) -> None:
        boosted, budget = Boosted.of(plan.problem), plan.problem.budget
        assert boosted.rule is not None
        self._rule = boosted.rule.in_units(additive.residual_scale)
        self._coef, self._bins, self._problem = additive.coef, bins_of(boosted.basis), plan.problem
        self._basis, self._oracle, self._rng = boosted.basis, oracle, rng
        self._multipliers = {  # by kind of query: of its last entry, where the additive model asks it as well
            release.query: noise_multiplier(release, plan.scale, budget.adjacency) if budget.private else 0.0
            for _, release in plan.schedule.entries
        }

    def trees(self) -> tuple[Trees, dict[str, Shares], float]:
        """Return the trees, the released shares of bins, and the weight of all trees.

        Returns
        -------
        trees : Trees
            The trees, without their weight.
        in_bins : dict of Shares
            By column.
        weight : float
            The weight.
        """
        rule, n, loss = self._rule, self._problem.n_samples, self._problem.loss
        self._oracle.bin_rows(self._bins, self._coef)
        effects, counts = bin_effects(self._basis, self._bins, self._problem.unpack(self._coef)[0]), BinCounts(self._bins.sizes)
        answer, noise_of_bins = self._oracle.ask(counts), self._noise_of(counts)
        marginals = Marginals(self._bins, answer, noise_of_bins, n, effects)
        gains, weights = ColumnGains(len(self._bins.sizes)), marginals.weights
        step, made = rule.step(self._problem.signal_to_noise / np.sqrt(rule.share), n), []
        spread: list[float] = []
        for number in range(rule.n_trees):
            if number and rule.learns_weights and number % max(1, rule.n_trees // PERIODS) == 0:
                weights = gains.weights(marginals.weights)
            tree = marginals.tree(rule.depth, weights, self._rng)
            query = LeafSums(loss, tree.columns, tree.splits, rule.clip)
            sums, noise = self._oracle.ask(query).reshape(loss.n_outputs, -1), self._noise_of(query)
            # A Newton step with a bound on its length: the sum over n, over the curvature of the leaf's share of the records,
            # plus one over the step.
            values = (sums / (n * (tree.shares / rule.curvature + 1 / step))).astype(np.float32)
            # The model is an average of the sums after each of the last trees, in which later trees have smaller shares.
            share = min(1.0, (rule.n_trees - number) / (rule.n_trees * AVERAGED))
            self._oracle.add_tree(tree.columns, tree.splits, values, share)
            gains.add(tree, sums, noise, n)
            made.append((tree, np.float32(share) * values))
            spread.append(share * noise / n)
        shares = np.concatenate(marginals.shares).astype(np.float32)
        background = Background(shares, np.array(spread, dtype=np.float32), rule.curvature, step)
        weight = self._weight()
        parts = np.split(answer / n, np.cumsum(self._bins.sizes)[:-1])
        in_bins = [Shares(part, np.full(part.size, noise_of_bins / n)) for part in parts]
        columns = dict(zip(self._basis.facts.columns, in_bins, strict=True))
        return self._gathered(made, background), columns, weight

    def slope(self, weight: float) -> tuple[float, float]:
        """Return the slope that calibrates scores of classes, and its relative variance; 1 and 0 for numbers."""
        loss, n = self._problem.loss, self._problem.n_samples
        if loss.targets != "classes":
            return 1.0, 0.0
        query = SlopeDerivatives(weight, loss.n_outputs, SLOPE.mean)
        return SLOPE.slope(lambda slope: replace(query, slope=slope), self._oracle.ask, n, self._noise_of(query) / n)

    def offset(self, weight: float) -> np.ndarray:
        """Return the mean residual of numbers, shrunk by what noise adds to its square; 0 for classes."""
        loss, n = self._problem.loss, self._problem.n_samples
        if loss.targets == "classes":
            return np.zeros(loss.n_outputs)
        query = ResidualSum(loss, weight, LARGEST_RESIDUAL)
        sums, noise = self._oracle.ask(query), self._noise_of(query)
        kept = james_stein(loss.n_outputs, noise**2, float(np.square(sums).sum()))
        return np.asarray(sums / n * kept)

    def _weight(self) -> float:
        """Return the weight of all trees: where the line through the slopes at 0 and 1 is 0."""
        query = TreeWeight(self._problem.loss, self._rule.limit)
        at_none, at_all = self._oracle.ask(query).tolist()
        # Slopes at the weights 0 and 1; the line through them is 0 at 1 + at_all / (at_none - at_all). Where noise hides the
        # bend, it is taken to be twice the noise, so that the weight stays near 1.
        bend = max(at_none - at_all, 2 * self._noise_of(query))
        return min(max(1 + at_all / bend, 0.0), LARGEST_WEIGHT) if bend > 0 else 1.0

    def _noise_of(self, query: Query) -> float:
        """Return the standard deviation of the noise of an answer."""
        return self._multipliers[type(query)] * query.clip_norm

    def _gathered(self, made: list[tuple[Tree, np.ndarray]], background: Background) -> Trees:
        return Trees(
            self._bins,
            np.stack([tree.columns for tree, _ in made]).astype(np.min_scalar_type(len(self._bins.sizes))),
            np.packbits(np.stack([tree.splits for tree, _ in made]), axis=2),
            np.stack([values for _, values in made]),
            background,
        )


def _has_trees(plan: Plan) -> bool:
    return isinstance(plan.problem.extra, Boosted)
