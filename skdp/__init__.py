"""Differentially private machine learning for people who use scikit-learn."""

from typing import TYPE_CHECKING

from skdp._first_use import on_first_use

if TYPE_CHECKING:
    from skdp import audit as audit
    from skdp import constraints as constraints
    from skdp import data as data
    from skdp import estimators as estimators
    from skdp import export as export
    from skdp import inspection as inspection
    from skdp import losses as losses
    from skdp import metrics as metrics
    from skdp import minimax as minimax
    from skdp import mirror_maps as mirror_maps
    from skdp import model_selection as model_selection
    from skdp import penalties as penalties
    from skdp import pipeline as pipeline
    from skdp import preprocessing as preprocessing
    from skdp import privacy as privacy
    from skdp import samplings as samplings
    from skdp import scorers as scorers
    from skdp import solvers as solvers
    from skdp import stats as stats
    from skdp import testing as testing
    from skdp._model_card import model_card as model_card
    from skdp._model_files import load_model as load_model
    from skdp._model_files import save_model as save_model
    from skdp._version import __version__ as __version__
    from skdp.estimators import *  # noqa: F403
    from skdp.export import to_onnx as to_onnx
    from skdp.export import to_sklearn as to_sklearn
    from skdp.privacy import BudgetExceededError as BudgetExceededError
    from skdp.privacy import LedgerError as LedgerError
    from skdp.privacy import LowSignalWarning as LowSignalWarning
    from skdp.privacy import NotPrivateWarning as NotPrivateWarning
    from skdp.privacy import OutsideGuaranteeWarning as OutsideGuaranteeWarning
    from skdp.privacy import PrivacyAccountingError as PrivacyAccountingError
    from skdp.privacy import PrivacyLedger as PrivacyLedger
    from skdp.privacy import PrivacyReport as PrivacyReport
    from skdp.privacy import PrivacySpent as PrivacySpent
    from skdp.privacy import SourceError as SourceError
    from skdp.privacy import TableWarning as TableWarning
    from skdp.privacy import WeakPrivacyWarning as WeakPrivacyWarning
else:
    __getattr__, __dir__, __all__ = on_first_use(__name__)
