"""
A table on a Dask cluster
=========================

A private fit needs sums over the records, and the workers of a cluster can add them up where the records are. This example
starts a small cluster on this machine, fits a Dask array that no process holds as a whole, and predicts lazily. On a cluster of
your own, only the first line is another: ``Client("tcp://scheduler:8786")``.
"""

# %%
# A cluster
# ---------
# Two workers, as threads of this process. The dashboard shows the tasks of the fit while it runs, if Bokeh is installed. In a
# script of your own, worker processes are faster: ``LocalCluster()`` below ``if __name__ == "__main__":``.

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster
from sklearn.metrics import roc_auc_score, roc_curve

from skdp import DPLogisticRegression

own = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", **own)
client = Client(cluster)
print(f"dashboard: {client.dashboard_link}")

# %%
# A table
# -------
# Half a million records in eight partitions. Each partition is made on a worker from a seed of its own, and could as well be read
# from a file: ``dask.dataframe.read_parquet("visits/")``.

random = da.random.default_rng(0)
X = random.uniform(-1, 1, size=(524_288, 10), chunks=(65_536, -1))
score = X @ np.linspace(-1, 1, 10) + 0.5 * random.normal(size=524_288, chunks=65_536)
y = (score > 0).astype(int)

# %%
# Fit
# ---
# The workers read the partitions once, and keep them. In each release they add up clipped gradients; the noise is drawn in this
# process, and only here. The report names whom the guarantee trusts.

model = DPLogisticRegression(epsilon=1.0, feature_bounds=1.0, classes=[0, 1], solver="newton")
model.fit(X, y)
print(next(line for line in model.privacy_report_.assumptions if "Dask" in line))

# %%
# Predict
# -------
# Predictions of a Dask array are a Dask array: nothing is computed before you ask for it.

probabilities = model.predict_proba(X)[:, 1]
print(probabilities)
some_y, some = da.compute(y[:50_000], probabilities[:50_000])
auc = roc_auc_score(some_y, some)

fig, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.plot(*roc_curve(some_y, some)[:2], label=f"epsilon = 1, AUC {auc:.3f}")
ax.plot([0, 1], [0, 1], color="0.7", linestyle="--")
ax.set(
    xlabel="false positive rate",
    ylabel="true positive rate",
    title="A model of partitions on a cluster",
)
ax.legend(loc="lower right")
plt.show()

client.close()
cluster.close()
assert auc > 0.9
