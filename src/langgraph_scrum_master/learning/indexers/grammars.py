"""Units of code in JavaScript, TypeScript, Go, Rust and Java, by their tree-sitter grammars."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from langgraph_scrum_master.errors import how_to_get
from langgraph_scrum_master.learning.indexers.files import LeftOut
from langgraph_scrum_master.learning.records import CodeUnit

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

LONGEST_SIGNATURE = 400
"""Characters; what is longer is cut."""

MINIFIED = 500
"""Characters of a line, on average, in a file that nobody wrote by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How a language is read."""

    language: str
    package: str
    kinds: Mapping[str, str]
    """What becomes a unit, by the type of its node; a function in a class is a method."""
    entry: str = "language"
    joint: str = "."
    """Between the parts of a qualified name."""


_JAVASCRIPT = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "method_definition": "method",
}
_TYPESCRIPT = _JAVASCRIPT | {
    "function_signature": "function",
    "abstract_class_declaration": "class",
    "interface_declaration": "class",
    "type_alias_declaration": "class",
    "enum_declaration": "class",
    "method_signature": "method",
    "abstract_method_signature": "method",
}
_GO = {
    "function_declaration": "function",
    "method_declaration": "method",
    "method_elem": "method",
    "type_spec": "class",
    "type_alias": "class",
    "const_spec": "constant",
}
_RUST = {
    "function_item": "function",
    "function_signature_item": "function",
    "macro_definition": "function",
    "struct_item": "class",
    "enum_item": "class",
    "union_item": "class",
    "trait_item": "class",
    "type_item": "class",
    "const_item": "constant",
    "static_item": "constant",
}
_JAVA = {
    "class_declaration": "class",
    "interface_declaration": "class",
    "enum_declaration": "class",
    "record_declaration": "class",
    "annotation_type_declaration": "class",
    "method_declaration": "method",
    "constructor_declaration": "method",
    "compact_constructor_declaration": "method",
}

_javascript = Grammar(language="javascript", package="tree_sitter_javascript", kinds=_JAVASCRIPT)
_typescript = Grammar(
    language="typescript", package="tree_sitter_typescript", kinds=_TYPESCRIPT, entry="language_typescript"
)

GRAMMARS: Mapping[str, Grammar] = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), _javascript),
    **dict.fromkeys((".ts", ".mts", ".cts"), _typescript),
    ".tsx": replace(_typescript, entry="language_tsx"),
    ".go": Grammar(language="go", package="tree_sitter_go", kinds=_GO),
    ".rs": Grammar(language="rust", package="tree_sitter_rust", kinds=_RUST, joint="::"),
    ".java": Grammar(language="java", package="tree_sitter_java", kinds=_JAVA),
}
"""The grammar for files with a suffix."""

_ASSIGNED = {
    "variable_declarator": ("name", "value"),
    "field_definition": ("property", "value"),
    "public_field_definition": ("name", "value"),
    "assignment_expression": ("left", "right"),
}
"""Where JavaScript gives a function a name, and Java a constant."""

_ANONYMOUS = ("arrow_function", "function_expression", "generator_function", "func_literal", "lambda_expression")
_AROUND = {"impl_item", "mod_item", "internal_module", "module"}
"""What is no unit, but stands in the qualified names of what is in it."""

_WRAPPERS = {
    "export_statement",
    "ambient_declaration",
    "lexical_declaration",
    "variable_declaration",
    "expression_statement",
    "type_declaration",
    "const_declaration",
    "field_declaration",
    "constant_declaration",
}
"""What may stand around a unit, below its comment."""

_ATTRIBUTES = ("attribute_item", "decorator")
_OPENINGS = ("package_clause", "package_declaration", "import_statement", "import_declaration")
_COMMENTS = ("comment", "line_comment", "block_comment")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]+")
_CONSTANT_FIELD = re.compile(r"(?s)(?=.*\bstatic\b)(?=.*\bfinal\b)")
_COMMENT_MARKS = re.compile(r"^\s*(?:/\*+!?|\*+/|\*(?!\*)|//[/!]?)? ?|\s*\*+/\s*$")
_LICENCE = re.compile(r"copyright|licen[cs]e|SPDX-", re.I)
_NOT_PROSE = re.compile(r"\W*$|(?:go:|nolint|eslint|prettier-|@ts-|istanbul|#(?:end)?region)")


class Lines:
    """Which lines a node stands in, from 1.

    By its bytes, not by its points: those of tree-sitter 0.26.0 corrupt the memory of the process.
    """

    def __init__(self, source: bytes) -> None:
        self._starts = [0, *(found.end() for found in re.finditer(b"\n", source))]

    def first(self, node: Node) -> int:
        """The line it begins in."""
        return bisect_right(self._starts, node.start_byte)

    def last(self, node: Node) -> int:
        """The line it ends in."""
        return bisect_right(self._starts, max(node.start_byte, node.end_byte - 1))

    def touch(self, above: Node, below: Node) -> bool:
        """Whether no line is between them."""
        return self.first(below) - self.last(above) <= 1


def parsed_units(path: str, text: str) -> list[CodeUnit]:
    """The units of a file in one of these languages, its module first; raises ValueError if it cannot be parsed."""
    grammar = GRAMMARS[path[path.rindex(".") :]]
    if len(text) > MINIFIED * (text.count("\n") + 1):
        raise LeftOut("minified")
    source = text.encode()
    tree, lines = _parsed(grammar, source), Lines(source)
    root = tree.root_node
    if root.has_error:
        raise ValueError(f"syntax error in line {_first_error(root, lines)}")
    name = path.rpartition(".")[0]
    module = CodeUnit(
        file_path=path,
        qualified_name=name,
        unit_type="module",
        language=grammar.language,
        signature=f"module {name}",
        docstring=_module_doc(root, lines),
        end_line=max(1, text.count("\n")),
    )
    return [module, *(replace(unit, file_path=path) for unit in _units(root, grammar, lines))]


def _parsed(grammar: Grammar, source: bytes) -> Tree:
    try:
        from tree_sitter import Language, Parser

        language = Language(getattr(import_module(grammar.package), grammar.entry)())
    except ImportError as error:
        raise LeftOut(f"{grammar.language} needs: {how_to_get('code')}") from error
    return Parser(language).parse(source)


def _first_error(node: Node, lines: Lines) -> int:
    while not node.is_error and (worse := next((child for child in node.children if child.has_error), None)):
        node = worse
    return lines.first(node)


class _Place(NamedTuple):
    """A node to look at, and what it stands in."""

    node: Node
    inside: str = ""
    of_class: bool = False
    in_function: bool = False


def _units(root: Node, grammar: Grammar, lines: Lines) -> Iterator[CodeUnit]:
    """The units below a node in their order; in a function only what is declared by name."""
    # Not by recursion: expressions may be nested deeper than Python can call.
    waiting = [_Place(root)]
    while waiting:
        node, inside, of_class, in_function = waiting.pop()
        kind = _kind(node, grammar, in_function)
        if kind:
            name = f"{inside}{_name(node)}"
            docstring, first = _doc(node, lines)
            yield CodeUnit(
                file_path="",
                qualified_name=name,
                unit_type="method" if kind == "function" and of_class else kind,
                language=grammar.language,
                signature=_signature(node),
                docstring=docstring,
                start_line=first,
                end_line=lines.last(node),
            )
            inside, of_class, in_function = f"{name}{grammar.joint}", kind == "class", kind != "class"
        elif node.type in _AROUND:
            inside, of_class = f"{inside}{_around(node)}{grammar.joint}", node.type == "impl_item"
        in_function = in_function or node.type in _ANONYMOUS
        waiting += [_Place(child, inside, of_class, in_function) for child in reversed(node.named_children)]


def _kind(node: Node, grammar: Grammar, in_function: bool) -> str:
    """What a node is a unit of; nothing if it is none."""
    kind = grammar.kinds.get(node.type, "")
    if in_function:
        return kind if kind in ("function", "class") else ""
    if node.type in _ASSIGNED:
        return _assigned(node)
    exported = node.parent is not None and node.parent.type == "export_statement"
    if exported and node.type in ("class", *_ANONYMOUS):
        return "class" if node.type == "class" else "function"
    return kind


def _assigned(node: Node) -> str:
    name, value = (node.child_by_field_name(field) for field in _ASSIGNED[node.type])
    if value is not None and value.type in _ANONYMOUS:
        return "function"
    around = node.parent
    if around is None or name is None or node.type != "variable_declarator":
        return ""
    if around.type == "field_declaration":
        modifiers = next((_text(child) for child in around.children if child.type == "modifiers"), "")
        return "constant" if _CONSTANT_FIELD.match(modifiers) else ""
    return "constant" if _CONSTANT.fullmatch(_text(name)) or around.type == "constant_declaration" else ""


def _name(node: Node) -> str:
    field = _ASSIGNED.get(node.type, ("name", ""))[0]
    name = node.child_by_field_name(field)
    receiver = node.child_by_field_name("receiver")
    # func (c *Cache[T]) Get()
    of = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)?\)$", _text(receiver)) if receiver else None
    called = re.sub(r"^(?:module\.)?exports\.|\.prototype\b", "", _text(name)) if name else "default"
    return f"{of[1]}.{called}" if of else called


def _around(node: Node) -> str:
    """The name of what is around units: of a Rust implementation the type, and the trait if it is of one."""
    if node.type != "impl_item":
        name = node.child_by_field_name("name")
        return _text(name).strip("'\"") if name else ""
    of, trait = (node.child_by_field_name(field) for field in ("type", "trait"))
    kind = _text(of).partition("<")[0] if of else ""
    return f"<{kind} as {_text(trait)}>" if trait else kind


def _signature(node: Node) -> str:
    """All before the body, on one line, with the words that begin a declaration of several."""
    value = node.child_by_field_name(_ASSIGNED.get(node.type, ("", "value"))[1])
    body = node.child_by_field_name("body") or (value.child_by_field_name("body") if value else None)
    whole = _text(node)
    head = whole.encode()[: body.start_byte - node.start_byte].decode() if body else whole
    around = node.parent
    if node.type in ("type_spec", "type_alias", "const_spec", "variable_declarator") and around is not None:
        if around.type in ("field_declaration", "constant_declaration"):
            head = _text(around)
        else:
            head = f"{_text(around).split()[0]} {head}"
    if node.type in ("type_spec", "macro_definition"):
        head = head.partition("{")[0]
    return " ".join(head.split())[:LONGEST_SIGNATURE].rstrip(" ;{")


def _doc(node: Node, lines: Lines) -> tuple[str, int]:
    """What the comment right above a unit says, and the line that the unit begins in, with its attributes."""
    top, above = _below_comment(node)
    first = lines.first(top)
    comments: list[str] = []
    while above is not None and above.type in _COMMENTS and lines.touch(above, top) and not _trails(above, lines):
        if not _text(above).startswith(("//!", "/*!")):
            comments.insert(0, _text(above))
        top, above = above, above.prev_named_sibling
    return _prose("\n".join(comments)), first


def _below_comment(node: Node) -> tuple[Node, Node | None]:
    """The outermost that begins with the unit, attributes included, and what stands above it."""
    top, above = node, node.prev_named_sibling
    while True:
        while above is not None and above.type in _ATTRIBUTES:
            top, above = above, above.prev_named_sibling
        around = top.parent
        if (above is not None and above.type in _COMMENTS) or around is None or around.type not in _WRAPPERS:
            return top, above
        if any(child.type == top.type and child.start_byte < top.start_byte for child in around.named_children):
            return top, None
        top, above = around, around.prev_named_sibling


def _trails(comment: Node, lines: Lines) -> bool:
    """Whether the comment stands behind something else in its line."""
    before = comment.prev_sibling
    return before is not None and lines.last(before) == lines.first(comment)


def _module_doc(root: Node, lines: Lines) -> str:
    """The last comment before all else, if it is neither the first unit's nor a licence."""
    comments: list[list[Node]] = []
    for child in root.named_children:
        if child.type not in _COMMENTS:
            if comments and child.type not in _OPENINGS and lines.touch(comments[-1][-1], child):
                comments[-1] = [each for each in comments[-1] if _text(each).startswith("//!")]
            break
        if comments and lines.touch(comments[-1][-1], child):
            comments[-1].append(child)
        else:
            comments.append([child])
    told = [_prose("\n".join(map(_text, each))) for each in comments]
    return next((text for text in reversed(told) if text and not _LICENCE.search(text)), "")


def _prose(comment: str) -> str:
    """A comment without its marks, and without what is meant for tools."""
    lines = [_COMMENT_MARKS.sub("", line).rstrip() for line in comment.split("\n")]
    return "\n".join(line for line in lines if not _NOT_PROSE.match(line)).strip()


def _text(node: Node) -> str:
    return (node.text or b"").decode()
