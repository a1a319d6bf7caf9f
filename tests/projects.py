"""A real project for tests: files in six languages, decisions, and fifty commits."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

CACHE_PY = '''"""Prices, kept for a while."""

LIFETIME = 60
"""Seconds that a price is kept."""


class PriceCache(dict[str, int]):
    """Keeps prices for 60 seconds."""

    def store(self, name: str, price: int = 0) -> None:
        """Keep a price."""

    @property
    async def size(self) -> int:
        return len(self)


def refund(order: str, *, amount: int) -> bool:
    """Give money back."""

    def inner() -> None: ...

    return bool(inner)
'''

CART_TS = """/** What a customer is about to buy. */

/** A shopping cart. */
export class Cart<T extends Item> {
  private items: T[] = [];

  /** Put an item into the cart. */
  async add(item: T, count = 1): Promise<void> {
    this.items.push(item);
  }
}

// Sums up what is in a cart.
export const total = (cart: Cart<Item>): number => 0;

export const MAX_ITEMS = 99;

/** Something for sale. */
interface Item {
  price(): number;
}
"""

VIEW_JSX = """/** Shows the checkout button. */
export function Checkout({ cart }) {
  const click = () => buy(cart);
  return <button onClick={click}>Buy</button>;
}
"""

SHIP_GO = """// Package ship sends parcels.
package ship

// Depot is where parcels wait.
type Depot struct {
	parcels []string
}

// Dispatch sends a parcel from the depot
// to its customer.
func (d *Depot) Dispatch(parcel string) error { return nil }

// Weight tells how heavy a parcel may be.
const Weight = 30
"""

TAX_RS = """//! Taxes by country.

/// A rate of value-added tax.
#[derive(Debug)]
pub struct Rate {
    percent: u8,
}

impl Rate {
    /// The tax on an amount of cents.
    pub fn on(&self, cents: u64) -> u64 { cents * self.percent as u64 / 100 }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { Ok(()) }
}
"""

ORDER_JAVA = """package shop;

/**
 * An order of a customer.
 */
public class Order {
    /** Days until an order is archived. */
    public static final int ARCHIVE_DAYS = 90;

    /** Cancel the order and tell the warehouse. */
    @Override
    public void cancel(String reason) throws TooLate {}

    static class Line {
        int cents() { return 0; }
    }
}
"""

FILES = {
    "shop/cache.py": CACHE_PY,
    "web/cart.ts": CART_TS,
    "web/view.jsx": VIEW_JSX,
    "ship/depot.go": SHIP_GO,
    "tax/src/rate.rs": TAX_RS,
    "app/Order.java": ORDER_JAVA,
    "README.md": "# Shop\n\nSells things.\n\n## Refunds\n\nRefunds take two days.\n",
    "docs/adr/0001-use-mysql.md": "# 1. Use MySQL\n\n## Status\n\nSuperseded by [2. Use PostgreSQL](0002.md)\n\n"
    "## Decision\n\nOrders are kept in MySQL.\n",
    "docs/adr/0002-use-postgresql.md": "# 2. Use PostgreSQL\n\n## Status\n\nAccepted\n\n## Decision\n\n"
    "Orders are kept in PostgreSQL.\n",
    "notes.txt": "note 0\n",
}


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def git(root: Path, *arguments: str, stdin: str = "") -> str:
    who = ["-c", "user.name=Maria", "-c", "user.email=maria@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(root), *who, *arguments], check=True, capture_output=True, input=stdin.encode()
    )
    return done.stdout.decode()


def new_repository(root: Path) -> Path:
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    return root


def commit(root: Path, message: str, files: Mapping[str, str] | None = None) -> str:
    """Commit all, with these files; gives the commit's name."""
    write(root, files or {})
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD").strip()


def import_history(root: Path, commits: Sequence[tuple[str, Mapping[str, str]]]) -> None:
    """Many commits in one go, a minute apart, and the files as they are in the last."""
    stream = []
    for i, (message, files) in enumerate(commits):
        stream.append(f"commit refs/heads/main\ncommitter Maria <maria@example.org> {1767225600 + 60 * i} +0000\n")
        stream.append(f"data {len(message.encode())}\n{message}\n")
        stream += [f"M 644 inline {path}\ndata {len(text.encode())}\n{text}\n" for path, text in files.items()]
    git(root, "fast-import", "--quiet", stdin="".join(stream))
    git(root, "checkout", "-q", "-f", "main")


def make_project(root: Path) -> Path:
    new_repository(root)
    first = ("Add the price cache\n\nPrices change often.", FILES)
    import_history(root, [first, *((f"Change note {i}", {"notes.txt": f"note {i}\n"}) for i in range(1, 50))])
    return root
