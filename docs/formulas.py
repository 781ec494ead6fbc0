"""Formulas whose lines break on narrow screens: browsers do not break a line within MathML."""

from xml.etree import ElementTree

RELATIONS, SIGNS = set("=≠≤≥<>≈≡\u223c∝→↦⇒∈⊂⊆≔:"), set("+-\u2212")
OPENING, CLOSING, EITHER = set("([{⟨⌊⌈"), set(")]}⟩⌋⌉"), set("|‖")
LONG = 24  # characters of a piece that is cut within one pair of brackets, too: wider than a phone
XMLNS = ' xmlns="http://www.w3.org/1998/Math/MathML"'  # HTML does not need it


def breakable(formula: str) -> str:
    """Cut a formula after relations, plus and minus signs, as TeX does; each piece is a formula."""
    tree = ElementTree.fromstring(formula.replace(XMLNS, ""))
    pieces = [part for piece in cut(list(tree[0]), 0) for part in (cut(piece, 1) if length(piece) > LONG else [piece])]
    return "<wbr>".join(written(piece, tree.attrib) for piece in pieces)


def cut(items: list[ElementTree.Element], within: int) -> list[list[ElementTree.Element]]:
    """Return the pieces of a row, cut outside of all brackets, or within at most ``within`` of them."""
    pieces: list[list[ElementTree.Element]] = [[]]
    depth, norm = 0, ""  # of open brackets; the bar that is open
    for item in items:
        sign = bracket(item)
        depth += (sign in OPENING) - (sign in CLOSING)
        if sign in EITHER and norm in ("", sign):
            norm = "" if norm else sign
        binary = sign in SIGNS and len(pieces[-1]) > 0 and ends_a_term(pieces[-1][-1])
        pieces[-1].append(item)
        if (sign in RELATIONS or binary) and depth <= within and not norm:
            item.set("form", "infix")  # or the last sign of a piece would have no space before it
            pieces.append([])
    return [piece for piece in pieces if piece]


def length(items: list[ElementTree.Element]) -> int:
    """Return the number of characters of a piece."""
    return sum(len("".join(item.itertext())) for item in items)


def ends_a_term(item: ElementTree.Element) -> bool:
    """Whether a sign after the item is an operation."""
    return item.tag != "mo" or bracket(item) in CLOSING | EITHER


def bracket(item: ElementTree.Element) -> str:
    """Return the sign that an item is, or that it raises or lowers something at."""
    while item.tag in ("msup", "msub", "msubsup"):
        item = item[0]
    return (item.text or " ") if item.tag in ("mo", "mi") else " "


def written(items: list[ElementTree.Element], attributes: dict[str, str]) -> str:
    """Return a formula of these items."""
    math = ElementTree.Element("math", attributes)
    ElementTree.SubElement(math, "mrow").extend(items)
    return ElementTree.tostring(math, encoding="unicode", short_empty_elements=False)
