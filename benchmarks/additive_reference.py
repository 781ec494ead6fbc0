"""Reference figures of an earlier study of the same rules, 10 seeds, medians; not measured here.

The study has the same tables, parts for training and testing, and budgets: zero_out, delta = 1/n². Its rows of scaled numbers and
indicators are cut to length 1, and so are those of the test part.
"""

__all__ = ["EPSILONS", "REFERENCE"]

EPSILONS = (0.1, 0.5, 1.0, 3.0)
Scores = dict[str, tuple[float, ...]]


def classes(auc: str, accuracy: str, log_loss: str) -> Scores:
    """Figures of a model of classes, one per epsilon."""
    return {"auc": read(auc), "accuracy": read(accuracy), "log_loss": read(log_loss)}


def numbers(unclipped: str, clipped: str) -> Scores:
    """Figures of a regression, one per epsilon."""
    return {"r2": read(unclipped), "clipped_r2": read(clipped)}


def read(text: str) -> tuple[float, ...]:
    """Figures with spaces between."""
    return tuple(map(float, text.split()))


REFERENCE: dict[str, dict[str, Scores]] = {
    "adult": {
        "linear": classes(".8873 .8959 .8970 .8983", ".8409 .8459 .8467 .8476", ".3535 .3351 .3342 .3318"),
        "additive": classes(".8929 .9079 .9098 .9092", ".8463 .8565 .8581 .8571", ".3416 .3141 .3128 .3217"),
    },
    "bank": {
        "linear": classes(".8294 .9024 .9049 .9059", ".8964 .9022 .9041 .9048", ".2861 .2406 .2365 .2352"),
        "additive": classes(".8773 .9077 .9132 .9131", ".8963 .9022 .9026 .9031", ".2577 .2341 .2344 .2378"),
    },
    "covertype": {
        "linear": classes(".8203 .8248 .8251 .8252", ".7562 .7586 .7590 .7588", ".5308 .5199 .5191 .5189"),
        "additive": classes(".8356 .8464 .8462 .8488", ".7647 .7719 .7723 .7736", ".4988 .4841 .4835 .4789"),
    },
    "ijcnn1": {
        "linear": classes(".9116 .9236 .9235 .9233", ".9189 .9316 .9314 .9312", ".2033 .1920 .1919 .1921"),
        "additive": classes(".9068 .9331 .9309 .9411", ".9166 .9354 .9384 .9450", ".2137 .1810 .1748 .1735"),
    },
    "spambase": {  # too faint for hats at the smallest epsilon
        "linear": classes(".8181 .9093 .9438 .9681", ".7391 .8201 .8707 .9174", ".5204 .3885 .3180 .2399"),
        "additive": classes(".8181 .9641 .9764 .9816", ".7391 .9005 .9255 .9397", ".5204 .2660 .1981 .1645"),
    },
    "mammography": {
        "linear": classes(".8694 .9207 .9263 .9305", ".9700 .9759 .9810 .9826", ".1116 .0762 .0701 .0687"),
        "additive": classes(".9011 .9372 .9335 .9423", ".9700 .9785 .9770 .9810", ".1195 .0720 .0752 .0691"),
    },
    "california": {
        "linear": numbers(".620 .645 .646 .644", ".628 .656 .664 .670"),
        "additive": numbers(".620 .678 .693 .694", ".628 .682 .696 .700"),
    },
    "bike": {
        "linear": numbers(".587 .687 .692 .693", ".597 .702 .709 .710"),
        "additive": numbers(".587 .689 .700 .708", ".597 .701 .715 .723"),
    },
}
