"""Attack every solver, and twins that break the guarantee; a solver that needs special settings has a line in ``AUDITED``."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from benchmarks.histogram_audits import audited_histograms
from benchmarks.saddle_twins import (
    HalvedNoiseSaddle,
    SaddleClassifier,
    UnderstatedPrivateDiff,
    UnnoisedDual,
    UnnoisedDualSaddle,
    UnscheduledReleasesSaddle,
)
from benchmarks.twins import (
    ExactGradientOverSet,
    ExactUpdates,
    First,
    ForgetfulGate,
    HalvedNoise,
    HalvedNoiseOverSet,
    HalvedNoiseQuantile,
    HalvedNoiseRanking,
    HalvedNoiseRegression,
    RepeatedObjective,
    RepeatedOutput,
    RepeatedPasses,
    Segment,
    UnderstatedDiscriminantAnalysis,
    UnderstatedFrankWolfe,
    UnderstatedInference,
    UnderstatedSufficientStatistics,
    UnderstatedSVRG,
    UnderstatedSVRGPlusPlus,
    UnscheduledReleases,
    UnscheduledReleasesOverSet,
    UnscheduledReleasesQuantile,
    UnscheduledReleasesRanking,
    UnscheduledReleasesRegression,
    UnscheduledReplicates,
    UnscheduledSelections,
    understated,
)
from benchmarks.writing import row, versions
from skdp import DPAUCMaximizer, DPConstrainedClassifier, DPLinearRegression, DPLogisticRegression, DPQuantileRegressor
from skdp.audit import AuditResult, audit
from skdp.estimators._base import DPEstimator
from skdp.privacy.budget import ADJACENCIES
from skdp.solvers import (
    SGD,
    SGDA,
    SOLVERS,
    SVRG,
    AcceleratedMirrorDescent,
    BlockCoordinateDescent,
    DiscriminantAnalysis,
    FrankWolfe,
    GradientDescent,
    InferenceDescent,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
    PrivateDiff,
    RescaledGradientDescent,
    Solver,
    StandardizedGradientDescent,
    SufficientStatistics,
    SVRGPlusPlus,
    WhitenedGradientDescent,
)

__all__ = ["AUDITED", "BUDGET", "CONFIDENCE", "TABLE", "Audited", "usual", "write_table"]

BUDGET = {"epsilon": 4.0, "delta": 1e-5}
CONFIDENCE = 1 - 1e-4
N_SAMPLES = 40
Twins = dict[str, tuple[type[DPEstimator], Solver]]
TABLE = np.zeros((N_SAMPLES, 2)), np.arange(N_SAMPLES) % 2  # records of zeros contribute nothing: noise alone hides the canary
# Step size, or noise that sets the penalty, at which the model hardly moves: the gradient of the canary stays the largest.
STILL = 1e-3
QUICK = {"n_steps": 4, "step_size": STILL}  # settings of a solver without a line in ``AUDITED``, if it has such parameters
CLIPPING = 0.1  # clip norm of such a solver: far below the gradient of the canary, which then contributes as much as possible
BROKEN: dict[type[DPEstimator], tuple[type[DPEstimator], type[DPEstimator]]] = {  # half the noise; more releases
    DPLogisticRegression: (HalvedNoise, UnscheduledReleases),
    DPLinearRegression: (HalvedNoiseRegression, UnscheduledReleasesRegression),
    DPConstrainedClassifier: (HalvedNoiseOverSet, UnscheduledReleasesOverSet),
    DPQuantileRegressor: (HalvedNoiseQuantile, UnscheduledReleasesQuantile),
    SaddleClassifier: (HalvedNoiseSaddle, UnscheduledReleasesSaddle),
    DPAUCMaximizer: (HalvedNoiseRanking, UnscheduledReleasesRanking),
}


@dataclass(frozen=True)
class Audited:
    """Hold the settings of the audit of a solver.

    Parameters
    ----------
    solver : Solver
        With public settings for which an attack is strong: few steps that stay at the start.
    tooth : float
        Share of the claimed epsilon that the audit of the transcript has to prove, from 4000 runs a side on.
    twins : dict of (type, Solver)
        Broken estimators, by what is wrong with them, which have to exceed the claim.
    kind : type of DPEstimator, default=DPLogisticRegression
        What fits.
    shown_by_model : frozenset of str, default=frozenset()
        Twins whose answers have the stated noise: it is the final model that has to exceed the claim.
    clip_norm : float or None, default=None
        Clip norm of the estimator; None leaves it to the solver.
    """

    solver: Solver
    tooth: float
    twins: Twins
    kind: type[DPEstimator] = DPLogisticRegression
    shown_by_model: frozenset[str] = frozenset()
    clip_norm: float | None = None

    def estimator(self, adjacency: str) -> BaseEstimator:
        """Return what must pass."""
        return build(self.kind, self.solver, adjacency, self.clip_norm)

    def shown_by(self, twin: str) -> str:
        """Return the view in which a twin has to exceed the claim."""
        return "final" if twin in self.shown_by_model else "transcript"

    def twin(self, name: str, adjacency: str) -> BaseEstimator:
        """Return what must fail."""
        kind, solver = self.twins[name]
        return build(kind, solver, adjacency, self.clip_norm)


def build(kind: type[DPEstimator], solver: Solver, adjacency: str, clip_norm: float | None = None) -> BaseEstimator:
    """Return an estimator with the claim of the audit."""
    bounds = {"target_bounds": (-1, 1)} if issubclass(kind, (DPLinearRegression, DPQuantileRegressor)) else {}
    if "vertices" in solver.needs:
        bounds = {"constraint": Segment(STILL)}
    if not issubclass(kind, DPAUCMaximizer):  # which always has one
        bounds |= {"fit_intercept": False} | ({} if clip_norm is None else {"clip_norm": clip_norm})
    return kind(**BUDGET, adjacency=adjacency, solver=solver, data_norm=1.0, **bounds)


def twins(solver: Solver, fewer: Solver, kind: type[DPEstimator] = DPLogisticRegression) -> Twins:
    """Return the twins of any solver: half the noise, or ``fewer``, which makes four releases and states one."""
    halved, unscheduled = BROKEN[kind]
    return {"noise halved": (halved, solver), "three releases unscheduled": (unscheduled, fewer)}


def usual(solver: type[Solver]) -> Audited:
    """Return the audit of a solver that needs no settings of its own: few steps that stay at the start."""
    quick = {name: value for name, value in QUICK.items() if name in solver().get_params()}
    chosen = solver(**quick)
    kind = next((kind for kind in BROKEN if fits(build(kind, chosen, "replace_one"))), None)
    if kind is None:
        raise LookupError(f"No estimator of the audit fits {solver.__name__}; expected a line in AUDITED.")
    return Audited(chosen, 0.7, twins(chosen, understated(solver)(**quick), kind), kind, clip_norm=CLIPPING)


def fits(estimator: BaseEstimator) -> bool:
    """Whether an estimator can be fitted with its solver."""
    try:
        estimator.plan(N_SAMPLES, 2, *([2] if is_classifier(estimator) else []))
    except ValueError:
        return False
    return True


# Samples of half of the records hide much of what samples can, and most runs still see the canary. Additional
# releases are easiest to detect where hardly any run misses them.
GD, HALF, MOST = ({"step_size": STILL} | batch for batch in ({}, {"batch_size": N_SAMPLES // 2}, {"batch_size": 0.8 * N_SAMPLES}))
ONCE = {"step_size": STILL, "batch_size": N_SAMPLES, "sampling": "single_pass"}  # every second record, in the first step
FEW = {
    "noise": 1e-3,
    "momentum": 0.0,
    "n_calibration_steps": 1,
    "moments_share": 0.01,
    "labels_share": 0.01,
    "calibration_share": 0.01,
}  # nearly all of the budget for the gradients
SLOW = {"path": STILL, "warm_up": 0.0, "moment_share": 1e-4}  # the same; 40 records are too few for histograms
POINTED = {"path": STILL, "target_share": 1e-4, "moment_share": 1e-4}  # the same
NEAR = {"n_inner": 2, "batch_size": N_SAMPLES // 2, "step_size": STILL, "snapshot_share": 0.99}  # nearly all for the snapshots
RIGID = {"noise": 1e-3, "curvature_share": 0.01}  # a ridge that keeps the model at the start; nearly all for gradients
WIDE = {"n_replicates": 1, "row_bound": 1e6}  # the canary, far from the centre of 39 zeros, keeps its weight
SHORT = {"step_scale": STILL}
SINGLE = {"n_rounds": 2, "n_inner": 2, "step_size": STILL}
LATE = {"moments_share": 0.1}  # enough to clip the canary; the rest for the moments of the classes
LEAK, UNNOISED = "exact gradient in the y-update", "primal gradient at the un-noised dual variable"
RESTING = {"primal_step_size": STILL, "dual_step_size": STILL}
CERTAIN = RESTING | {
    "restart_share": 0.99
}  # nearly all for the gradients: differences show nothing of a canary whose gradient is constant
DUAL = RESTING | {"dual_share": 0.99}  # nearly all for the release that is repeated
TELLING = {"primal_step_size": STILL, "dual_step_size": N_SAMPLES / 2}  # the dual variable moves by half a clip norm of a record
AUDITED = {
    "accmd": Audited(
        AcceleratedMirrorDescent(4, **SHORT),
        0.7,
        twins(AcceleratedMirrorDescent(4, **SHORT), understated(AcceleratedMirrorDescent)(4, **SHORT), DPConstrainedClassifier)
        | {LEAK: (ExactGradientOverSet, ExactUpdates(4, **SHORT))},
        DPConstrainedClassifier,
        frozenset({LEAK}),
    ),
    "gd": Audited(GradientDescent(4, **GD), 0.7, twins(GradientDescent(4, **GD), understated(GradientDescent)(4, **GD))),
    "newton": Audited(Newton(4, **RIGID), 0.7, twins(Newton(4, **RIGID), understated(Newton)(4, **RIGID))),
    "standardized_gd": Audited(
        StandardizedGradientDescent(4, **FEW),
        0.7,
        twins(StandardizedGradientDescent(4, **FEW), understated(StandardizedGradientDescent)(4, **FEW)),
    ),
    "objective": Audited(
        ObjectivePerturbation(STILL),
        0.5,
        twins(ObjectivePerturbation(STILL), RepeatedObjective(STILL)),
    ),
    "output": Audited(OutputPerturbation(STILL), 0.7, twins(OutputPerturbation(STILL), RepeatedOutput(STILL))),
    "ssp": Audited(
        SufficientStatistics(),
        0.7,
        twins(SufficientStatistics(), UnderstatedSufficientStatistics(), DPLinearRegression),
        DPLinearRegression,
    ),
    "moments": Audited(
        DiscriminantAnalysis(**LATE),
        0.6,
        twins(DiscriminantAnalysis(**LATE), UnderstatedDiscriminantAnalysis(**LATE), DPAUCMaximizer),
        DPAUCMaximizer,
    ),
    "whitened_gd": Audited(
        WhitenedGradientDescent(4, **SLOW),
        0.7,
        twins(WhitenedGradientDescent(4, **SLOW), understated(WhitenedGradientDescent)(4, **SLOW), DPLinearRegression),
        DPLinearRegression,
    ),
    "rescaled_gd": Audited(
        RescaledGradientDescent(4, **POINTED),
        0.6,
        twins(RescaledGradientDescent(4, **POINTED), understated(RescaledGradientDescent)(4, **POINTED), DPQuantileRegressor),
        DPQuantileRegressor,
    ),
    "inference": Audited(
        InferenceDescent(4, **WIDE),
        0.4,
        {
            "noise halved": (HalvedNoise, InferenceDescent(4, **WIDE)),
            "three replicates unscheduled": (UnscheduledReplicates, UnderstatedInference(4, **WIDE)),
        },
    ),
    "frank_wolfe": Audited(
        FrankWolfe(8),
        0.45,
        {
            "noise halved": (HalvedNoiseOverSet, FrankWolfe(8)),
            "six releases unscheduled": (UnscheduledSelections, UnderstatedFrankWolfe(8)),
        },
        DPConstrainedClassifier,
    ),
    "skgd": Audited(
        BlockCoordinateDescent(First(), **SINGLE),
        0.7,
        twins(BlockCoordinateDescent(First(), **SINGLE), understated(BlockCoordinateDescent)(First(), **SINGLE)),
    ),
    "sgd": Audited(SGD(4, **HALF), 0.3, twins(SGD(4, **HALF), understated(SGD)(4, **MOST))),
    "sgd single pass": Audited(
        SGD(4, **ONCE),
        0.3,
        {"noise halved": (HalvedNoise, SGD(4, **ONCE)), "three passes unscheduled": (ForgetfulGate, RepeatedPasses(4, **ONCE))},
    ),
    "sgda": Audited(
        SGDA(4, **RESTING), 0.7, twins(SGDA(4, **RESTING), understated(SGDA)(4, **RESTING), SaddleClassifier), SaddleClassifier
    ),
    "privatediff": Audited(
        PrivateDiff(4, **CERTAIN),
        0.7,
        twins(PrivateDiff(4, **CERTAIN), UnderstatedPrivateDiff(1, **DUAL), SaddleClassifier)
        | {UNNOISED: (UnnoisedDualSaddle, UnnoisedDual(1, **TELLING))},
        SaddleClassifier,
        frozenset({UNNOISED}),
    ),
    "svrg": Audited(SVRG(4, **NEAR), 0.5, twins(SVRG(4, **NEAR), UnderstatedSVRG(1, **NEAR))),
    "svrg++": Audited(SVRGPlusPlus(2, **NEAR), 0.5, twins(SVRGPlusPlus(2, **NEAR), UnderstatedSVRGPlusPlus(1, **NEAR))),
}
covered = {audited.solver.name for audited in AUDITED.values()}
AUDITED |= {name: usual(solver) for name, solver in SOLVERS.items() if name not in covered}


def write_table(out: Path, n_runs: int, n_jobs: int | None) -> bool:
    """Audit everything; write Markdown, and JSON beside it.

    Parameters
    ----------
    out : Path
        Markdown file; its directory is created where needed.
    n_runs : int
        Fits of each of the two tables, per solver, adjacency and twin.
    n_jobs : int or None
        Processes.

    Returns
    -------
    bool
        Whether every bound is on the right side of the claim.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    records = []
    for about, estimator in cases():
        result = audit(estimator, *TABLE, n_runs=n_runs, confidence=CONFIDENCE, n_jobs=n_jobs)
        records += lines(about, result)
        print(f"{about['solver']}, {about['adjacency']}, {about['twin'] or 'as released'}: {result.consistent=}", flush=True)
    records += audited_histograms(BUDGET, n_runs, CONFIDENCE)
    contents = {"versions": versions(), "settings": BUDGET | {"n_runs": n_runs, "confidence": CONFIDENCE}, "records": records}
    out.write_text(markdown(contents), encoding="utf-8")
    out.with_suffix(".json").write_text(json.dumps(contents, indent=2) + "\n", encoding="utf-8")
    return all(record["as_expected"] for record in records)


def cases() -> Iterator[tuple[dict[str, Any], BaseEstimator]]:
    """Yield every estimator to audit, and its description."""
    for (name, audited), adjacency in itertools.product(AUDITED.items(), ADJACENCIES):
        about = {"solver": name, "adjacency": adjacency, "twin": None}
        yield about, audited.estimator(adjacency)
        for twin in audited.twins:
            yield about | {"twin": twin}, audited.twin(twin, adjacency)


def lines(about: dict[str, Any], result: AuditResult) -> Iterator[dict[str, Any]]:
    """Return one record per view; for a twin, only the view that shows the defect has to exceed the claim."""
    for bound in result.bounds:
        share = bound.epsilon / result.epsilon
        if about["twin"] is None:
            teeth = AUDITED[about["solver"]].tooth if bound.view == "transcript" and result.n_runs >= 4000 else 0.0
            expected = teeth <= share <= 1
        else:
            expected = share > 1 or bound.view != AUDITED[about["solver"]].shown_by(about["twin"])
        yield about | {"view": bound.view, "bound": bound.epsilon, "method": bound.method, "as_expected": bool(expected)}


def markdown(contents: dict[str, Any]) -> str:
    """Return the two tables as Markdown."""
    settings, records = contents["settings"], contents["records"]
    made_with = ", ".join(f"{name} {version}" for name, version in contents["versions"].items())
    text = f"""# Audit

Each row is an attack on {settings["n_runs"]} real fits of each of two tables that differ in one record, the canary. The bound
is a lower bound on the epsilon that these fits spend at delta {settings["delta"]:g}, with confidence
{settings["confidence"]:g}. If the guarantee holds, the bound is below the claim; the closer it is to the claim, the less room
there is for a better attack. The adversary sees either the transcript, which has every noisy answer, or the final model. The
methods "gaussian", "subsampled" and "proof" use the trade-off curve of the schedule. "cover" uses a Gaussian that covers the
selections of a schedule with some slack. "clopper-pearson" uses only the definition of (epsilon, delta).

The claimed epsilon is {settings["epsilon"]:g}, the other {N_SAMPLES - 1} records are zeros, and there is no intercept. There
are at most 4 steps or epochs of size {STILL:g}; "frank_wolfe" makes 8 steps over a segment of that size. "sgd" samples every
second record (four of five if releases are unscheduled), and its single pass uses every second record once, chosen publicly.
"skgd" always draws the coordinate of the canary. Saddle problems are linear in both sides. "column_histograms" and
"fine_histograms" are no solvers, but the releases from which columns are learned: each has the whole budget here, and counts
columns and a target in which all records but the canary are alike. The noise is real, from the operating system.
Made by `python -m benchmarks audit` with {made_with}.
"""
    heads = ["solver", "adjacency", "view", "claimed epsilon", "bound", "runs a side", "method", "as it should be"]
    parts = [text, row(heads), row(["---"] * len(heads))]
    parts += [cells(record, settings, [record["solver"]]) for record in records if record["twin"] is None]
    about = "These twins are broken on purpose: the bound of the transcript, or of the leaking model, must be above the claim."
    parts += ["", "## Broken twins", "", about, "", row(["solver", "twin", *heads[1:]]), row(["---"] * (len(heads) + 1))]
    parts += [cells(record, settings, [record["solver"], record["twin"]]) for record in records if record["twin"]]
    return "\n".join(parts) + "\n"


def cells(record: dict[str, Any], settings: dict[str, Any], first: list[str]) -> str:
    """Line of a table."""
    numbers = [f"{settings['epsilon']:g}", f"{record['bound']:.2f}", str(settings["n_runs"]), record["method"]]
    return row([*first, record["adjacency"], record["view"], *numbers, "yes" if record["as_expected"] else "NO"])
