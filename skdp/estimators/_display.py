"""Show estimators with their epsilon, and with the spent budget once they are fitted."""

import html
from inspect import Signature, signature, unwrap
from typing import Any

from skdp.privacy.errors import shown


class TrueSignature:
    """Descriptor of the signature of a class, for help and completion."""

    def __get__(self, instance: Any, owner: type) -> Signature:
        """Return the signature of the undecorated constructor, without ``self``."""
        given = signature(unwrap(owner.__init__))  # type: ignore[misc]
        return given.replace(parameters=list(given.parameters.values())[1:])


class Displayed:
    """Mixin for scikit-learn's estimators: ``print`` and notebooks show the budget that a fitted one has spent."""

    __signature__ = TrueSignature()

    def __str__(self) -> str:
        """Return the parameters and, once fitted, the spent budget."""
        return "\n".join([repr(self), *self._spent_in_words()])

    @property
    def _repr_html_(self) -> Any:
        """Diagram of scikit-learn, if its configuration asks for one, and the budget."""
        diagram = super()._repr_html_  # type: ignore[misc]
        return lambda: diagram() + self._budget_in_html()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """Return the text and the HTML form for notebooks."""
        bundle = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        page = {"text/html": bundle["text/html"] + self._budget_in_html()} if "text/html" in bundle else {}
        return {**bundle, "text/plain": str(self), **page}

    def _spent_in_words(self) -> list[str]:
        statement = vars(self).get("privacy_report_")
        return [] if statement is None else [statement.summary]

    def _budget_in_html(self) -> str:
        """Return the line below the diagram: the spent budget, or epsilon before a fit."""
        (line,) = self._spent_in_words() or [f"epsilon = {shown(self.epsilon)}"]  # type: ignore[attr-defined]
        return f'<p class="skdp-budget" style="font-family: monospace; margin: .3em 0">{html.escape(line)}</p>'
