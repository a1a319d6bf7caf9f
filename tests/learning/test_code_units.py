"""Code, cut into units, in six languages."""

from __future__ import annotations

import sys

import pytest

from langgraph_scrum_master.learning.indexers.code import SUFFIXES, code_units
from langgraph_scrum_master.learning.indexers.files import SkippedFileError
from langgraph_scrum_master.learning.records import CodeUnit
from projects import CACHE_PY, CART_TS, FILES, ORDER_JAVA, SHIP_GO, TAX_RS, VIEW_JSX


def units(path: str, text: str) -> dict[str, CodeUnit]:
    return {unit.qualified_name: unit for unit in code_units(path, text, "shop")}


def told(path: str, text: str) -> list[tuple[str, str, str, str]]:
    return [
        (unit.unit_type, unit.qualified_name, unit.signature, unit.docstring) for unit in code_units(path, text, "shop")
    ]


def test_python() -> None:
    assert told("shop/cache.py", CACHE_PY) == [
        ("module", "shop.cache", "module shop.cache", "Prices, kept for a while."),
        ("constant", "LIFETIME", "LIFETIME = 60", "Seconds that a price is kept."),
        ("class", "PriceCache", "class PriceCache(dict[str, int]):", "Keeps prices for 60 seconds."),
        ("method", "PriceCache.store", "def store(self, name: str, price: int=0) -> None:", "Keep a price."),
        ("method", "PriceCache.size", "async def size(self) -> int:", ""),
        ("function", "refund", "def refund(order: str, *, amount: int) -> bool:", "Give money back."),
        ("function", "refund.inner", "def inner() -> None:", ""),
    ]
    assert (units("a.py", CACHE_PY)["PriceCache.size"].start_line, units("a.py", CACHE_PY)["refund"].end_line) == (
        13,
        23,
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_file_is_nothing_but_a_module(suffix: str) -> None:
    assert [unit.unit_type for unit in code_units(f"shop/empty{suffix}", "")] == ["module"]


def test_typescript() -> None:
    assert told("web/cart.ts", CART_TS) == [
        ("module", "web/cart", "module web/cart", "What a customer is about to buy."),
        ("class", "Cart", "class Cart<T extends Item>", "A shopping cart."),
        ("method", "Cart.add", "async add(item: T, count = 1): Promise<void>", "Put an item into the cart."),
        ("function", "total", "const total = (cart: Cart<Item>): number =>", "Sums up what is in a cart."),
        ("constant", "MAX_ITEMS", "const MAX_ITEMS = 99", ""),
        ("class", "Item", "interface Item", "Something for sale."),
        ("method", "Item.price", "price(): number", ""),
    ]
    assert (units("a.ts", CART_TS)["Cart"].start_line, units("a.ts", CART_TS)["Cart"].end_line) == (4, 11)


def test_what_is_called_within_a_function_of_javascript_is_no_unit() -> None:
    assert told("web/view.jsx", VIEW_JSX) == [
        ("module", "web/view", "module web/view", ""),
        ("function", "Checkout", "function Checkout({ cart })", "Shows the checkout button."),
    ]
    assert units("a.tsx", "const A = () => <b/>;\n")["A"].language == "typescript"


def test_the_ways_in_which_javascript_names_functions() -> None:
    text = (
        "exports.one = function (a) {};\nmodule.exports.two = () => 2;\nCart.prototype.three = function* () {};\n"
        "module.exports = { four() {} };\nclass A { five = async () => {};\n  static LIMIT = 3; }\n"
        "export default class { six() {} }\nnamespace.seven = 7;\n"
        "function outer() { function inner() {} const local = () => 1; }\nlet eight, NINE = 9;\n"
    )

    found = told("a.mjs", text)

    assert [(kind, name) for kind, name, *_ in found][1:] == [
        ("function", "one"),
        ("function", "two"),
        ("function", "Cart.three"),
        ("method", "four"),
        ("class", "A"),
        ("method", "A.five"),
        ("class", "default"),
        ("method", "default.six"),
        ("function", "outer"),
        ("function", "outer.inner"),
        ("constant", "NINE"),
    ]


def test_typescript_has_more_than_javascript() -> None:
    text = (
        "export abstract class A { abstract f(): void; }\ntype B = { a: 1 };\nenum C { X }\n"
        "declare function d(): void;\nnamespace N { export function e() {} }\n"
        "@Injectable()\nexport class F {\n  /** G. */\n  @Get()\n  g() {}\n}\n"
    )

    found = units("a.ts", text)

    assert list(found)[1:] == ["A", "A.f", "B", "C", "d", "N.e", "F", "F.g"]
    assert (found["F.g"].docstring, found["F.g"].start_line) == ("G.", 9)
    assert found["B"].signature == "type B = { a: 1 }"


def test_go() -> None:
    assert told("ship/depot.go", SHIP_GO) == [
        ("module", "ship/depot", "module ship/depot", "Package ship sends parcels."),
        ("class", "Depot", "type Depot struct", "Depot is where parcels wait."),
        (
            "method",
            "Depot.Dispatch",
            "func (d *Depot) Dispatch(parcel string) error",
            "Dispatch sends a parcel from the depot\nto its customer.",
        ),
        ("constant", "Weight", "const Weight = 30", "Weight tells how heavy a parcel may be."),
    ]


def test_a_licence_does_not_say_what_a_file_is_about() -> None:
    licence = "// Copyright 2026 Maria\n// All rights reserved.\n\n"

    assert units("a.go", f"{licence}// Package a adds.\npackage a\n")["a"].docstring == "Package a adds."
    assert units("a.ts", f"{licence}// Adds.\nimport b from 'b';\n")["a"].docstring == "Adds."
    assert units("a.ts", f"{licence}// Of f.\nfunction f() {{}}\n")["a"].docstring == ""


def test_receivers_and_groups_of_go() -> None:
    text = (
        "package a\n\ntype (\n\t// S is.\n\tS interface { Get() int }\n\tT = S\n)\n\n"
        "const (\n\t// A is.\n\tA = 1\n\tB\n)\n\n//go:noinline\nfunc (c Cache[K, V]) Get() {}\n\n"
        "var x = 1 // not of f\nfunc f() {}\n"
    )

    found = units("a.go", text)

    assert list(found)[1:] == ["S", "S.Get", "T", "A", "B", "Cache.Get", "f"]
    assert [found[name].docstring for name in ("S", "T", "A", "B", "Cache.Get", "f")] == [
        "S is.",
        "",
        "A is.",
        *3 * [""],
    ]


def test_rust() -> None:
    assert told("tax/src/rate.rs", TAX_RS) == [
        ("module", "tax/src/rate", "module tax/src/rate", "Taxes by country."),
        ("class", "Rate", "pub struct Rate", "A rate of value-added tax."),
        ("method", "Rate::on", "pub fn on(&self, cents: u64) -> u64", "The tax on an amount of cents."),
        (
            "method",
            "<Rate as std::fmt::Display>::fmt",
            "fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result",
            "",
        ),
    ]
    # With its attributes, below its comment.
    assert units("a.rs", TAX_RS)["Rate"].start_line == 4


def test_modules_traits_and_macros_of_rust() -> None:
    text = (
        "mod inner { pub fn f() {} }\ntrait S { fn m(&self); }\nimpl<T> Cache<T> { const N: u8 = 1; fn g() {} }\n"
        "macro_rules! twice { () => {} }\npub static LIMIT: u32 = 3;\nfn outer() { fn within() {} }\n"
    )

    assert [(kind, name) for kind, name, *_ in told("a.rs", text)][1:] == [
        ("function", "inner::f"),
        ("class", "S"),
        ("method", "S::m"),
        ("constant", "Cache::N"),
        ("method", "Cache::g"),
        ("function", "twice"),
        ("constant", "LIMIT"),
        ("function", "outer"),
        ("function", "outer::within"),
    ]


def test_java() -> None:
    assert told("app/Order.java", ORDER_JAVA) == [
        ("module", "app/Order", "module app/Order", ""),
        ("class", "Order", "public class Order", "An order of a customer."),
        (
            "constant",
            "Order.ARCHIVE_DAYS",
            "public static final int ARCHIVE_DAYS = 90",
            "Days until an order is archived.",
        ),
        (
            "method",
            "Order.cancel",
            "@Override public void cancel(String reason) throws TooLate",
            "Cancel the order and tell the warehouse.",
        ),
        ("class", "Order.Line", "static class Line", ""),
        ("method", "Order.Line.cents", "int cents()", ""),
    ]


def test_fields_records_and_anonymous_classes_of_java() -> None:
    text = (
        "interface S { int MAX = 3; int m(); }\nrecord P(int x) { P {} }\nenum E { A; void f() {} }\n"
        "class C { int field = 1; void g() { new Runnable() { public void run() {} }; } }\n"
    )

    assert list(units("a.java", text))[1:] == ["S", "S.MAX", "S.m", "P", "P.P", "E", "E.f", "C", "C.g"]


def test_a_name_that_comes_twice_is_two_units() -> None:
    assert list(units("a.py", "def f(): ...\n\n\ndef f(x): ...\n")) == ["a", "f", "f~2"]
    assert list(units("a.ts", "function f(): void;\nfunction f(a?: 1) {}\n")) == ["a", "f", "f~2"]


@pytest.mark.parametrize("path", [path for path in FILES if not path.endswith((".md", ".txt"))])
def test_a_unit_that_only_moves_keeps_its_hash(path: str) -> None:
    comment = "# x\n" if path.endswith(".py") else "// x\n"
    # Behind the first line, which may be the comment of the file.
    first, _, rest = FILES[path].partition("\n")

    before = units(path, FILES[path])
    after = units(path, f"{first}\n\n{comment}\n{rest}")

    moved = [name for name in before if before[name].start_line > 1 and before[name].unit_type != "module"]
    assert moved
    for name in moved:
        assert after[name].start_line == before[name].start_line + 3
        assert after[name].content_hash == before[name].content_hash


def test_a_change_within_a_function_changes_its_hash_and_no_other() -> None:
    before, after = units("a.py", CACHE_PY), units("a.py", CACHE_PY.replace("return len(self)", "return 0"))

    assert [name for name in before if before[name].content_hash != after[name].content_hash] == ["PriceCache.size"]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.ts", "class A {}\nfunction f( {\n", 2),
        ("a.go", "package a\n\nfunc f( {}\n", 3),
        ("a.rs", "fn f() {}\nfn g( {}\n", 2),
        ("a.java", "class A {\n  int f(\n}\n", 2),
        ("a.py", "x = 1\ndef f(:\n", 2),
    ],
)
def test_what_does_not_parse_is_reported_with_its_line(path: str, text: str, line: int) -> None:
    with pytest.raises(ValueError, match=f"in line {line}"):
        code_units(path, text)


def test_long_expressions_are_no_problem() -> None:
    text = f"const x = {' + '.join(['a'] * 5000)};\nfunction f() {{}}\n".replace(" + ", " +\n")

    assert list(units("a.js", text)) == ["a", "f"]


def test_what_nobody_wrote_by_hand_is_left_out() -> None:
    with pytest.raises(SkippedFileError, match="minified"):
        code_units("a.js", "function a(){};" * 100)


def test_without_the_extra_the_way_to_get_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)

    with pytest.raises(SkippedFileError, match=r"^go needs: pip install '\.\[code\]' in a clone"):
        code_units("a.go", "package a\n")
    assert units("a.py", "x = 1\n")
