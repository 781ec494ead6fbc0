"""Describe a table by two or five releases under one budget: counts, means, deviations, quantiles and shares of categories."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._table_types import TypedColumns, as_table, is_lazy
from skdp._validation import check_level, shown
from skdp.preprocessing._column_kinds import Category, Column, Number
from skdp.preprocessing._frame_facts import FrameFacts, complete_schema, warn_of_ids, warn_of_left_out
from skdp.preprocessing._learning import USUAL_SHARE, Learned, LearningPlan, learn
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier
from skdp.privacy.budget import Budget
from skdp.privacy.errors import silently
from skdp.privacy.queries import EvenMoments, HaarCounts, LimitedMoments
from skdp.privacy.queries.column_histograms import BUCKETS
from skdp.privacy.queries.haar_counts import CANDIDATES, CATEGORY_WEIGHT, LEVELS
from skdp.privacy.queries.limited_moments import LARGEST
from skdp.privacy.report.statement import PrivacyReport
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.stats._candidates import edges_for
from skdp.stats._description import Category as DescribedCategory
from skdp.stats._description import Description, NumberColumn
from skdp.stats._distribution import Distribution
from skdp.stats._limited import limits_of, moments_of
from skdp.stats._plan import Ask, Statement, StatisticsPlan, as_text, budget_of
from skdp.stats._reading import reading
