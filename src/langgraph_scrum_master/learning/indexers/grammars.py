"""Parses code units of JavaScript, TypeScript, Go, Rust and Java with tree-sitter."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from langgraph_scrum_master.errors import how_to_get
from langgraph_scrum_master.learning.indexers.files import SkippedFileError
from langgraph_scrum_master.learning.records import CodeUnit

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

LONGEST_SIGNATURE = 400
"""The maximum number of characters of a signature."""

MINIFIED = 500
"""The average line length from which a file counts as minified, by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How to parse a language."""

    language: str
    package: str
    kinds: Mapping[str, str]
    """Unit types by node type. A function in a class becomes a method."""
    entry: str = "language"
    separator: str = "."
    """The separator in qualified names."""


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
    ".rs": Grammar(language="rust", package="tree_sitter_rust", kinds=_RUST, separator="::"),
    ".java": Grammar(language="java", package="tree_sitter_java", kinds=_JAVA),
}
"""Grammars by file suffix."""

_BINDINGS = {
    "variable_declarator": ("name", "value"),
    "field_definition": ("property", "value"),
    "public_field_definition": ("name", "value"),
    "assignment_expression": ("left", "right"),
}
"""The fields for name and value of nodes that bind a name: functions in JavaScript, constants in Java."""

_ANONYMOUS = ("arrow_function", "function_expression", "generator_function", "func_literal", "lambda_expression")
_CONTAINERS = {"impl_item", "mod_item", "internal_module", "module"}
"""Nodes that are no units, but are part of the qualified names of the units in them."""

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
"""Nodes that can enclose a unit below its doc comment."""

_ATTRIBUTES = ("attribute_item", "decorator")
_OPENINGS = ("package_clause", "package_declaration", "import_statement", "import_declaration")
_COMMENTS = ("comment", "line_comment", "block_comment")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]+")
_CONSTANT_FIELD = re.compile(r"(?s)(?=.*\bstatic\b)(?=.*\bfinal\b)")
_COMMENT_MARKS = re.compile(r"^\s*(?:/\*+!?|\*+/|\*(?!\*)|//[/!]?)? ?|(?<!\s)\s*+(?<!\*)\*++/\s*$")
_LICENCE = re.compile(r"copyright|licen[cs]e|SPDX-", re.I)
_NOT_PROSE = re.compile(r"\W*$|(?:go:|nolint|eslint|prettier-|@ts-|istanbul|#(?:end)?region)")


class Lines:
    """The line numbers of nodes, from 1.

    Computed from byte offsets: reading a node's points corrupts memory in tree-sitter 0.26.0.
    """

    def __init__(self, source: bytes) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(b"\n", source))]

    def first(self, node: Node) -> int:
        """The first line of the node."""
        return bisect_right(self._starts, node.start_byte)

    def last(self, node: Node) -> int:
        """The last line of the node."""
        return bisect_right(self._starts, max(node.start_byte, node.end_byte - 1))

    def adjacent(self, above: Node, below: Node) -> bool:
        """Whether no line separates the nodes."""
        return self.first(below) - self.last(above) <= 1


def parse_units(path: str, text: str) -> list[CodeUnit]:
    """The units of a file, the module first. Raises ValueError if it cannot be parsed."""
    grammar = GRAMMARS[path[path.rindex(".") :]]
    if len(text) > MINIFIED * (text.count("\n") + 1):
        raise SkippedFileError("minified")
    source = text.encode()
    tree, lines = _parse(grammar, source), Lines(source)
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


def _parse(grammar: Grammar, source: bytes) -> Tree:
    try:
        from tree_sitter import Language, Parser

        language = Language(getattr(import_module(grammar.package), grammar.entry)())
    except ImportError as error:
        raise SkippedFileError(f"{grammar.language} needs: {how_to_get('code')}") from error
    return Parser(language).parse(source)


def _first_error(node: Node, lines: Lines) -> int:
    while not node.is_error and (broken := next((child for child in node.children if child.has_error), None)):
        node = broken
    return lines.first(node)


class _Visit(NamedTuple):
    """A node to visit, with its enclosing scope."""

    node: Node
    prefix: str = ""
    in_class: bool = False
    in_function: bool = False


def _units(root: Node, grammar: Grammar, lines: Lines) -> Iterator[CodeUnit]:
    """The units below a node in source order; inside functions only named declarations."""
    # Iterative: expressions can be nested deeper than Python's recursion limit.
    stack = [_Visit(root)]
    while stack:
        node, prefix, in_class, in_function = stack.pop()
        kind = _kind(node, grammar, in_function)
        if kind:
            name = f"{prefix}{_name(node)}"
            docstring, first = _doc(node, lines)
            yield CodeUnit(
                file_path="",
                qualified_name=name,
                unit_type="method" if kind == "function" and in_class else kind,
                language=grammar.language,
                signature=_signature(node),
                docstring=docstring,
                start_line=first,
                end_line=lines.last(node),
            )
            prefix, in_class, in_function = f"{name}{grammar.separator}", kind == "class", kind != "class"
        elif node.type in _CONTAINERS:
            prefix, in_class = f"{prefix}{_container_name(node)}{grammar.separator}", node.type == "impl_item"
        in_function = in_function or node.type in _ANONYMOUS
        stack += [_Visit(child, prefix, in_class, in_function) for child in reversed(node.named_children)]


def _kind(node: Node, grammar: Grammar, in_function: bool) -> str:
    """The unit type of a node; empty if it is no unit."""
    kind = grammar.kinds.get(node.type, "")
    if in_function:
        return kind if kind in ("function", "class") else ""
    if node.type in _BINDINGS:
        return _kind_of_binding(node)
    exported = node.parent is not None and node.parent.type == "export_statement"
    if exported and node.type in ("class", *_ANONYMOUS):
        return "class" if node.type == "class" else "function"
    return kind


def _kind_of_binding(node: Node) -> str:
    name, value = (node.child_by_field_name(field) for field in _BINDINGS[node.type])
    if value is not None and value.type in _ANONYMOUS:
        return "function"
    parent = node.parent
    if parent is None or name is None or node.type != "variable_declarator":
        return ""
    if parent.type == "field_declaration":
        modifiers = next((_text(child) for child in parent.children if child.type == "modifiers"), "")
        return "constant" if _CONSTANT_FIELD.match(modifiers) else ""
    return "constant" if _CONSTANT.fullmatch(_text(name)) or parent.type == "constant_declaration" else ""


def _name(node: Node) -> str:
    field = _BINDINGS.get(node.type, ("name", ""))[0]
    name = node.child_by_field_name(field)
    receiver = node.child_by_field_name("receiver")
    # func (c *Cache[T]) Get()
    owner = re.search(r"(?<!\w)(\w+)\s*(?:\[[^\[\]]*\]\s*)?\)$", _text(receiver)) if receiver else None
    own_name = re.sub(r"^(?:module\.)?exports\.|\.prototype\b", "", _text(name)) if name else "default"
    return f"{owner[1]}.{own_name}" if owner else own_name


def _container_name(node: Node) -> str:
    """The name of a container: for a Rust implementation the type, with the trait if there is one."""
    if node.type != "impl_item":
        identifier = node.child_by_field_name("name")
        return _text(identifier).strip("'\"") if identifier else ""
    owner, trait = (node.child_by_field_name(field) for field in ("type", "trait"))
    name = _text(owner).partition("<")[0] if owner else ""
    return f"<{name} as {_text(trait)}>" if trait else name


def _signature(node: Node) -> str:
    """The source before the body on one line, with the keyword of a grouped declaration."""
    value = node.child_by_field_name(_BINDINGS.get(node.type, ("", "value"))[1])
    body = node.child_by_field_name("body") or (value.child_by_field_name("body") if value else None)
    whole = _text(node)
    head = whole.encode()[: body.start_byte - node.start_byte].decode() if body else whole
    parent = node.parent
    if node.type in ("type_spec", "type_alias", "const_spec", "variable_declarator") and parent is not None:
        if parent.type in ("field_declaration", "constant_declaration"):
            head = _text(parent)
        else:
            head = f"{_text(parent).split()[0]} {head}"
    if node.type in ("type_spec", "macro_definition"):
        head = head.partition("{")[0]
    return " ".join(head.split())[:LONGEST_SIGNATURE].rstrip(" ;{")


def _doc(node: Node, lines: Lines) -> tuple[str, int]:
    """The doc comment above a unit, and the first line of the unit including its attributes."""
    top, above = _below_comment(node)
    first = lines.first(top)
    comments: list[str] = []
    while above is not None and above.type in _COMMENTS and lines.adjacent(above, top) and not _trails(above, lines):
        if not _text(above).startswith(("//!", "/*!")):
            comments.insert(0, _text(above))
        top, above = above, above.prev_named_sibling
    return _prose("\n".join(comments)), first


def _below_comment(node: Node) -> tuple[Node, Node | None]:
    """The outermost node that starts with the unit or its attributes, and the node above it."""
    top, above = node, node.prev_named_sibling
    while True:
        while above is not None and above.type in _ATTRIBUTES:
            top, above = above, above.prev_named_sibling
        parent = top.parent
        if (above is not None and above.type in _COMMENTS) or parent is None or parent.type not in _WRAPPERS:
            return top, above
        if any(child.type == top.type and child.start_byte < top.start_byte for child in parent.named_children):
            return top, None
        top, above = parent, parent.prev_named_sibling


def _trails(comment: Node, lines: Lines) -> bool:
    """Whether the comment follows code on its line."""
    before = comment.prev_sibling
    return before is not None and lines.last(before) == lines.first(comment)


def _module_doc(root: Node, lines: Lines) -> str:
    """The last comment before the code, unless it documents the first unit or is a licence."""
    comments: list[list[Node]] = []
    for child in root.named_children:
        if child.type not in _COMMENTS:
            if comments and child.type not in _OPENINGS and lines.adjacent(comments[-1][-1], child):
                comments[-1] = [each for each in comments[-1] if _text(each).startswith("//!")]
            break
        if comments and lines.adjacent(comments[-1][-1], child):
            comments[-1].append(child)
        else:
            comments.append([child])
    texts = [_prose("\n".join(map(_text, each))) for each in comments]
    return next((text for text in reversed(texts) if text and not _LICENCE.search(text)), "")


def _prose(comment: str) -> str:
    """The text of a comment, without comment markers and directives for tools."""
    lines = [_COMMENT_MARKS.sub("", line).rstrip() for line in comment.split("\n")]
    return "\n".join(line for line in lines if not _NOT_PROSE.match(line)).strip()


def _text(node: Node) -> str:
    return (node.text or b"").decode()
