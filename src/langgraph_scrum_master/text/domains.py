"""Classifies the kind of work: by the words of a text, such as a gate's name or reason, or by a shell command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

Domain: TypeAlias = Literal[
    "debugging",
    "refactoring",
    "feature",
    "testing",
    "configuration",
    "documentation",
    "performance",
    "security",
    "integration",
]

DOMAINS: tuple[Domain, ...] = get_args(Domain)

_DEFAULT: Domain = "feature"
"""The default domain."""

_WORDS: Mapping[Domain, str] = {
    "testing": r"tests?|testing|coverage|pytest|jest|junit|fixtures?|assertions?|flaky|regressions?|qa",
    "security": r"security|secure|vulnerab\w+|cves?|secrets?|credentials?|auth|authenti\w+|authori[sz]\w+|encrypt\w+",
    "debugging": r"lint\w*|ruff|mypy|types|typing|type (?:check\w*|errors?)|builds?|compil\w+|syntax|crash\w*",
    "documentation": r"docs?|documentation|docstrings?|readme|changelog",
    "performance": r"perf|performance|latency|slow\w*|throughput|benchmarks?|timeouts?",
    "integration": r"deploy\w*|contracts?|apis?|integrations?|endpoints?|webhooks?|migrations?|releases?",
    "configuration": r"config\w*|settings?|env|environments?|dependenc\w+",
    "refactoring": r"refactor\w*|duplicat\w+|complexity|dead code",
}
"""Words in texts, by domain."""

_COMMANDS: tuple[tuple[Domain, str], ...] = (
    ("security", r"bandit|gitleaks|pip-audit|semgrep|trivy|(?:npm|pnpm|yarn|cargo) audit"),
    ("performance", r"hyperfine|k6|locust|perf|py-spy|wrk|pytest .*--benchmark"),
    ("documentation", r"mkdocs|sphinx-build|docusaurus|typedoc|(?:npm|pnpm|yarn|bun) run docs\S*|make (?:html|docs)"),
    (
        "testing",
        r"pytest|tox|nox|unittest|coverage run|jest|vitest|mocha|rspec|phpunit|ctest|cypress|playwright test"
        r"|(?:go|cargo|deno|dotnet|swift|mix|bazel|flutter) (?:test|nextest)"
        r"|(?:npm|pnpm|yarn|bun) (?:run )?(?:test\S*|t\b)|(?:make|just|task) (?:\S+ )*(?:test\S*|check)"
        r"|(?:mvnw?|gradlew?) (?:\S+ )*(?:test|verify|check)",
    ),
    (
        "configuration",
        r"(?:pip3?|conda|mamba|apt|apt-get|brew|gem|bundle|composer|npm|pnpm|yarn|bun|poetry|uv|pdm) "
        r"(?:\S+ )*?(?:install|i|ci|add|sync|lock|update|upgrade)\b|(?:go (?:get|mod)|cargo add|uv pip|npm ci)"
        r"|yarn$|yamllint|taplo|direnv|nginx -t|git config",
    ),
    (
        "debugging",
        r"mypy|pyright|ty|tsc|ruff|flake8|pylint|black|isort|eslint|biome|prettier|shellcheck|clippy|golangci-lint"
        r"|make|cmake|ninja|meson|just|gcc|g\+\+|clang|rustc|javac|webpack|rollup|vite|esbuild|bazel|mvnw?|gradlew?"
        r"|(?:go|cargo|dotnet|swift) (?:build|check|vet|clippy|run|fmt)|(?:npm|pnpm|yarn|bun) run",
    ),
    (
        "integration",
        r"docker|docker-compose|podman|kubectl|helm|terraform|tofu|pulumi|ansible\S*|aws|gcloud|az|fly|flyctl|vercel"
        r"|heroku|curl|wget|https?|psql|mysql|sqlite3|redis-cli|mongosh|ssh|scp|rsync|gh|alembic"
        r"|git (?:push|pull|fetch)",
    ),
    ("configuration", r".*\.(?:toml|ini|cfg|conf|env|ya?ml|properties)(?:\s|$)"),
)
"""Beginnings of commands, by domain. The first match counts."""

_TEXT_PATTERNS = [(domain, re.compile(rf"\b(?:{words})\b")) for domain, words in _WORDS.items()]
_COMMAND_PATTERNS = [(domain, re.compile(rf"(?:{pattern})(?:\s|$)")) for domain, pattern in _COMMANDS]
_BETWEEN = re.compile(r"[\W_]+")


def domain_of(*texts: str) -> Domain:
    """The domain of the first matching word, in the first text that has one; `feature` by default."""
    return next((domain for text in texts if (domain := _first_domain(_BETWEEN.sub(" ", text).lower()))), _DEFAULT)


def _first_domain(text: str) -> Domain | None:
    matches = [(match.start(), domain) for domain, pattern in _TEXT_PATTERNS if (match := pattern.search(text))]
    return min(matches)[1] if matches else None


def domain_of_command(command: str) -> Domain | None:
    """The domain of a simple command; None if the command is unknown."""
    return next((domain for domain, pattern in _COMMAND_PATTERNS if pattern.match(command)), None)
