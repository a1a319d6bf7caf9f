"""Over a hundred shapes of credentials in the places where they are found, and ordinary texts that look similar."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from langgraph_scrum_master.text.redact import REDACTED, redacted_values, redactor

RANDOM = random.Random(7)
LETTERS, HEX = string.ascii_letters + string.digits, string.digits + "abcdef"


def some(count: int, of: str = LETTERS) -> str:
    """Characters at random, with a digit and a capital, made here so that no scanner finds a key in this file."""
    return "".join(RANDOM.choice(of) for _ in range(count - 2)) + "7" + ("A" if "A" in of else "a")


KEYS: dict[str, str] = {
    "Anthropic": "sk-ant-" + "api03-" + some(90),
    "Anthropic OAuth": "sk-ant-" + "oat01-" + some(60),
    "OpenAI": "sk-" + some(48),
    "OpenAI project": "sk-proj-" + some(100),
    "OpenAI service account": "sk-svcacct-" + some(60),
    "OpenAI admin": "sk-admin-" + some(60),
    "OpenRouter": "sk-or-" + "v1-" + some(64, HEX),
    "DeepSeek": "sk-" + some(32, HEX),
    "Langfuse": "sk-lf-" + str(uuid.UUID(int=RANDOM.getrandbits(128))),
    "LiteLLM": "sk-" + some(22),
    "Stripe": "sk_" + "live_" + some(24),
    "Stripe restricted": "rk_" + "live_" + some(24),
    "Stripe webhook": "whsec_" + some(32),
    "ElevenLabs": "sk_" + some(48, HEX),
    "GitHub": "gh" + "p_" + some(36),
    "GitHub OAuth": "gh" + "o_" + some(36),
    "GitHub app": "gh" + "s_" + some(36),
    "GitHub refresh": "gh" + "r_" + some(36),
    "GitHub fine-grained": "github_" + "pat_" + some(82),
    "GitLab": "gl" + "pat-" + some(20),
    "GitLab runner": "gl" + "rt-" + some(20),
    "GitLab deploy": "gl" + "dt-" + some(20),
    "GitLab trigger": "gl" + "ptt-" + some(40, HEX),
    "Slack bot": "xox" + "b-123456789012-" + some(24),
    "Slack user": "xox" + "p-123456789012-" + some(32),
    "Slack app": "xap" + "p-1-A0123456789-" + some(64, HEX),
    "Slack webhook": "https://hooks.slack.com/services/" + "T0AAAAAAA/B0AAAAAAA/" + some(24),
    "AWS": "AK" + "IA" + some(16, string.ascii_uppercase + "234567").upper(),
    "AWS temporary": "AS" + "IA" + some(16, string.ascii_uppercase + "234567").upper(),
    "Google": "AI" + "za" + some(35),
    "Google OAuth secret": "GOC" + "SPX-" + some(28),
    "Google access": "ya29" + "." + some(60),
    "SendGrid": "SG" + "." + some(22) + "." + some(43),
    "Twilio": "S" + "K" + some(32, HEX),
    "Mailgun": "key" + "-" + some(32, HEX),
    "Mailchimp": some(32, HEX) + "-us" + "12",
    "npm": "npm" + "_" + some(36),
    "PyPI": "pypi" + "-AgEIcHlwaS5vcmc" + some(60),
    "RubyGems": "rubygems" + "_" + some(48, HEX),
    "Docker": "dckr" + "_pat_" + some(27),
    "Hugging Face": "hf" + "_" + some(34),
    "Groq": "gsk" + "_" + some(52),
    "xAI": "xai" + "-" + some(80),
    "Perplexity": "pplx" + "-" + some(48),
    "Replicate": "r8" + "_" + some(37),
    "NVIDIA": "nvapi" + "-" + some(64),
    "Tavily": "tvly" + "-dev-" + some(32),
    "Pinecone": "pcsk" + "_" + some(60),
    "LangSmith": "lsv2" + "_pt_" + some(32, HEX) + "_" + some(10, HEX),
    "DigitalOcean": "dop" + "_v1_" + some(64, HEX),
    "Shopify": "shp" + "at_" + some(32, HEX),
    "Microsoft Entra": some(3) + "8" + "Q~" + some(34),
    "Telegram": "123456789" + ":AA" + some(33),
    "Discord": "M" + some(23) + "." + some(6) + "." + some(30),
    "Discord webhook": "https://discord.com/api/webhooks/" + "123456789012345678/" + some(68),
    "Atlassian": "ATA" + "TT3" + some(180),
    "Databricks": "dapi" + some(32, HEX),
    "Vault": "hv" + "s." + some(90),
    "Terraform": some(14) + ".atlas" + "v1." + some(60),
    "Grafana": "gl" + "sa_" + some(32) + "_" + some(8, HEX),
    "New Relic": "NR" + "AK-" + some(27, string.ascii_uppercase).upper(),
    "Sentry": "sntry" + "s_" + some(80),
    "Supabase": "sbp" + "_" + some(40, HEX),
    "Postman": "PM" + "AK-" + some(24, HEX) + "-" + some(34, HEX),
    "Airtable": "pat" + some(14) + "." + some(64, HEX),
    "Figma": "figd" + "_" + some(40),
    "Linear": "lin" + "_api_" + some(40),
    "Notion": "ntn" + "_" + some(46),
    "age": "AGE-SECRET" + "-KEY-1" + some(58, string.ascii_uppercase).upper(),
    "JSON web token": "ey" + "J" + some(30) + ".ey" + "J" + some(60) + "." + some(43),
    "Fireworks": "fw" + "_" + some(24),
    "Together": "tgp" + "_v1_" + some(43),
    "Cerebras": "csk" + "-" + some(48),
    "Voyage": "pa" + "-" + some(43),
    "Firecrawl": "fc" + "-" + some(32, HEX),
    "Jina": "jina" + "_" + some(60),
    "E2B": "e2b" + "_" + some(40, HEX),
    "Resend": "re" + "_" + some(8) + "_" + some(24),
    "Doppler": "dp" + ".pt." + some(43),
    "PlanetScale": "pscale" + "_pw_" + some(43),
    "Fly": "Fm" + "2_" + some(80),
    "Netlify": "nfp" + "_" + some(36),
    "Vercel": "vcp" + "_" + some(56),
    "Cloudflare": "cfut" + "_" + some(40),
    "Buildkite": "bkua" + "_" + some(40, HEX),
    "HubSpot": "pat" + "-na1-" + str(uuid.UUID(int=RANDOM.getrandbits(128))),
    "Square": "EA" + "AA" + some(60),
    "Dropbox": "sl" + "." + some(130),
    "Asana": "2/1201234567890123/1201234567890124:" + some(32, HEX),
    "1Password": "op" + "s_ey" + "J" + some(250),
    "Tailscale": "tskey" + "-auth-" + some(12) + "-" + some(30),
    "Render": "rnd" + "_" + some(32),
    "Prefect": "pnu" + "_" + some(36),
    "Pulumi": "pul" + "-" + some(40, HEX),
    "PostHog": "phx" + "_" + some(43),
    "Contentful": "CFPAT" + "-" + some(43),
    "Weights & Biases": "wandb" + "_v1_" + some(77),
}
PASSWORDS = ["hunter22", "p@ss/w0rd!", "x", "two words", "correct-horse", "#Secret1"]
PLACES: dict[str, Callable[[str], str]] = {
    "JSON": lambda value: json.dumps({"user": "ann", "password": value}),
    "JSON in JSON": lambda value: json.dumps(json.dumps({"client_secret": value})),
    "JSON three deep": lambda value: json.dumps(json.dumps(json.dumps({"api_key": value}))),
    "Python": lambda value: f"db_password = {value!r}",
    "YAML": lambda value: f'  api_token: "{value}"',
    "option": lambda value: f'tool --password "{value}" --verbose',
    "environment": lambda value: f'export DB_PASSWORD="{value}"',
    "XML": lambda value: f"<password>{value}</password>",
    "dict": lambda value: repr({"secret_key": value}),
}
ADDRESSES = [
    *("redis://:{}@cache:6379", "postgresql://app:{}@db/x", "amqp://u:{}@q", "mongodb+srv://u:{}@c.example.net/x"),
    *("https://user:{}@example.com/a", "mysql://root:{}@127.0.0.1:3306/x", "smtp://a%40b:{}@mail:587"),
]


def redact(text: str) -> str:
    step = redactor("secrets")
    assert step is not None
    return step(text)


@pytest.mark.parametrize("name", KEYS)
def test_a_key_is_redacted_wherever_it_stands(name: str) -> None:
    key = KEYS[name]

    for text in (
        key,
        f"It is {key}.",
        f"({key})",
        f'"{key}"',
        f"a\n{key}\nb",
        f"key,{key},1",
        f"`{key}`",
        f"x={key}&y=1",
    ):
        assert key not in redact(text), text
        assert key[-12:] not in redact(text), text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("password", PASSWORDS)
def test_a_password_is_redacted_by_its_place(place: str, password: str) -> None:
    text = PLACES[place](password)
    shown = redact(text)

    assert REDACTED in shown
    assert shown.count(password) == text.replace(PLACES[place]("~"), "").count(password) - 1 or password not in shown
    assert password not in shown or len(password) == 1


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_password_is_redacted_in_an_address(address: str) -> None:
    for password in ("hunter22", "pw", "a:b", "x%40y"):
        assert password not in redact(f"connect to {address.format(password)} now").replace("127", "")


def test_a_key_block_is_redacted_whole_or_cut() -> None:
    for kind in (
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
        "ENCRYPTED PRIVATE KEY",
    ):
        body = "\n".join(some(64) for _ in range(5))
        block = f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"
        for text in (block, block.replace("\n", "\\n"), json.dumps({"pem": block}), block[: len(block) // 2]):
            assert not any(line in redact(f"{text}") for line in body.split("\n")), text


def ordinary() -> Iterator[str]:
    """What agents write that is no secret: code, prose, commits, ids, digests and pictures."""
    root = Path(__file__).parents[2]
    for path in [*sorted((root / "src").rglob("*.py")), *sorted((root / "docs").glob("*.md"))]:
        yield from path.read_text(encoding="utf-8").splitlines()
    for i in range(300):
        digest = hashlib.sha256(str(i).encode())
        yield f"commit {digest.hexdigest()[:40]} of run {uuid.UUID(bytes=digest.digest()[:16])}"
        yield f"sha256:{digest.hexdigest()} sha512-{base64.b64encode(digest.digest() * 2).decode()}"
        yield f"data:image/png;base64,{base64.b64encode(digest.digest() * 6).decode()}"


def test_ordinary_texts_are_hardly_ever_changed() -> None:
    lines = list(ordinary())
    changed = [line for line in lines if redact(line) != line]

    assert len(lines) > 20_000
    assert len(changed) / len(lines) < 0.001, changed[:20]


def test_all_leaves_no_free_text() -> None:
    step = redactor("all")
    assert step is not None
    args = {"query": "Where is the key?", "Which queue?": ["the queue", {"note": "in billing"}], "n": 3, "on": True}

    left = json.dumps(redacted_values({"content": "Refunds go there.", "args": args}, step))

    assert not any(word in left for word in ("Where", "Which", "queue?", "billing", "Refunds"))
