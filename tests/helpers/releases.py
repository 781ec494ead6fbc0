"""A record of first releases that outlives the process that makes them."""

import os

from skdp.privacy.oracle import Oracle

__all__ = ["witness_releases"]


def witness_releases(path):
    """Write one byte to a file for every fit of this process that makes its first release."""
    out, ask = os.open(path, os.O_WRONLY | os.O_APPEND), Oracle.ask

    def witnessed(self, query):
        if not self.transcript:
            os.write(out, b"x")
        return ask(self, query)

    Oracle.ask = witnessed
