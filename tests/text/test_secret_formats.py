"""What is recognised as a secret, by its form, its name or its place, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_scrum_master.text.redact import REDACTED, redacted_values, redactor
from langgraph_scrum_master.text.secret_formats import SECRET_FORMATS

MIXED = "a1B2c3D4" * 6
HEX = "0a1b2c3d" * 8

# Put together here, so that no scanner takes them for real ones.
EXAMPLES = {
    "private key": "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\n\nlQOY\n-----END PGP " + "PRIVATE KEY BLOCK-----",
    "age": "AGE-SECRET-" + "KEY-1" + MIXED.upper(),
    "JSON web token": "eyJ" + "hbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "Anthropic": "sk-" + "ant-api03-" + MIXED,
    "OpenAI": "sk-" + "proj-" + MIXED,
    "Stripe": "rk_" + "live_" + MIXED,
    "Stripe webhook": "whsec" + "_" + MIXED,
    "ElevenLabs": "sk" + "_" + HEX[:48],
    "GitHub": "github" + "_pat_" + MIXED,
    "GitLab": "glpat" + "-" + MIXED[:20],
    "Slack": "xoxb" + "-123456789012-" + MIXED,
    "Slack webhook": "hooks.slack.com/" + "services/T00000000/B00000000/" + MIXED[:24],
    "AWS": "ASIA" + "ABCDEFGH12345678",
    "Google": "AIza" + MIXED[:35],
    "Google OAuth": "GOCSPX" + "-" + MIXED[:28],
    "SendGrid": "SG" + "." + MIXED[:22] + "." + MIXED[:43],
    "Twilio": "SK" + HEX[:32],
    "Mailgun": "key" + "-" + HEX[:32],
    "Mailchimp": HEX[:32] + "-us" + "12",
    "npm": "npm" + "_" + MIXED[:36],
    "PyPI": "pypi" + "-AgEIcHlwaS5vcmc" + MIXED,
    "RubyGems": "rubygems" + "_" + HEX[:48],
    "Docker": "dckr" + "_pat_" + MIXED[:27],
    "Hugging Face": "hf" + "_" + MIXED[:34],
    "Groq": "gsk" + "_" + MIXED,
    "xAI": "xai" + "-" + MIXED,
    "Perplexity": "pplx" + "-" + MIXED,
    "Replicate": "r8" + "_" + MIXED[:37],
    "NVIDIA": "nvapi" + "-" + MIXED,
    "Tavily": "tvly" + "-dev-" + MIXED[:32],
    "Pinecone": "pcsk" + "_" + MIXED,
    "LangSmith": "lsv2" + "_pt_" + HEX[:32] + "_" + HEX[:10],
    "DigitalOcean": "dop" + "_v1_" + HEX,
    "Shopify": "shpat" + "_" + HEX[:32],
    "Microsoft Entra": "abc" + "8Q~" + MIXED[:34],
    "Azure SAS": "sig" + "=" + MIXED[:43] + "%3D",
    "Linear": "lin" + "_api_" + MIXED[:40],
    "Notion": "ntn" + "_" + MIXED[:46],
    "Telegram": "123456789" + ":A" + MIXED[:34],
    "Discord": "M" + MIXED[:25] + "." + MIXED[:6] + "." + MIXED[:38],
    "Discord webhook": "discord.com/api/" + "webhooks/123456789012345678/" + MIXED,
    "Atlassian": "ATATT3" + MIXED,
    "Databricks": "dapi" + HEX[:32],
    "HashiCorp Vault": "hvs" + "." + MIXED[:24],
    "HCP Terraform": MIXED[:14] + ".atlasv1" + "." + MIXED,
    "Grafana": "glsa" + "_" + MIXED[:32] + "_" + HEX[:8],
    "New Relic": "NRAK" + "-" + MIXED[:27].upper(),
    "Sentry": "sntrys" + "_" + MIXED,
    "Supabase": "sbp" + "_" + HEX[:40],
    "Postman": "PMAK" + "-" + HEX[:24] + "-" + HEX[:34],
    "Airtable": "pat" + MIXED[:14] + "." + HEX,
    "Figma": "figd" + "_" + MIXED[:40],
    "Fireworks": "fw" + "_" + MIXED[:24],
    "Together": "tgp" + "_v1_" + MIXED[:40],
    "Cerebras": "csk" + "-" + MIXED[:40],
    "Voyage": "pa" + "-" + MIXED[:43],
    "Firecrawl": "fc" + "-" + HEX[:32],
    "Jina": "jina" + "_" + MIXED[:50],
    "E2B": "e2b" + "_" + (HEX * 2)[:40],
    "Resend": "re" + "_" + MIXED[:8] + "_" + MIXED[:24],
    "Doppler": "dp" + ".pt." + MIXED[:43],
    "PlanetScale": "pscale" + "_pw_" + MIXED[:43],
    "Fly": "Fm" + "2_" + MIXED[:50],
    "Netlify": "nfp" + "_" + MIXED[:36],
    "Vercel": "vcp" + "_" + MIXED[:40],
    "Cloudflare": "cfut" + "_" + MIXED[:40],
    "Buildkite": "bkua" + "_" + (HEX * 2)[:40],
    "HubSpot": "pat" + "-na1-" + "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f",
    "Square": "EA" + "AA" + (MIXED * 2)[:60],
    "Dropbox": "sl" + "." + (MIXED * 4)[:130],
    "Asana": "2/1201234567890123/1201234567890124:" + HEX[:32],
    "1Password": "op" + "s_eyJ" + MIXED[:50],
    "Tailscale": "tskey" + "-auth-" + MIXED[:12] + "-" + MIXED[:30],
    "Render": "rnd" + "_" + MIXED[:32],
    "Prefect": "pnu" + "_" + MIXED[:36],
    "Pulumi": "pul" + "-" + (HEX * 2)[:40],
    "PostHog": "phx" + "_" + MIXED[:43],
    "Contentful": "CFPAT" + "-" + MIXED[:43],
    "Weights & Biases": "wandb" + "_v1_" + MIXED[:50],
}


def without_secrets(text: str) -> str:
    redact = redactor("secrets")
    assert redact is not None
    return redact(text)


def test_every_format_has_a_source_and_an_example() -> None:
    assert [each.name for each in SECRET_FORMATS] == list(EXAMPLES)
    assert all(each.documented for each in SECRET_FORMATS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_secret_of_each_provider_is_redacted(name: str) -> None:
    assert without_secrets(f"use {EXAMPLES[name]} now") == f"use {REDACTED} now"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("redis://:pw@cache:6379/0", "redis://#@cache:6379/0"),
        ("amqp://app:p@ss@queue/x", "amqp://#@queue/x"),
        (r"{\"password\": \"x\"}", r"{\"password\": \"#\"}"),
        (
            r'"{\"user\": \"ann\", \"client_secret\": \"two words\"}"',
            r'"{\"user\": \"ann\", \"client_secret\": \"#\"}"',
        ),
        ("{'passwd': 'it is \"x\"'}", "{'passwd': '#'}"),
        ("psql --password x --host db", "psql --password # --host db"),
        ("deploy --token=x -v", "deploy --token=# -v"),
        ('["deploy", "--api-key", "x"]', '["deploy", "--api-key", "#"]'),
        ("curl -u ann:pw https://example.com", "curl -u ann:# https://example.com"),
        ("Authorization: Basic YW5uOnB3", "Authorization: Basic #"),
        ("Cookie: session=abc; theme=dark", "Cookie: #"),
        ("<db:password>x</db:password>", "<db:password>#</db:password>"),
        ("export AWS_SECRET_ACCESS_KEY=abc/def+ghi", "export AWS_SECRET_ACCESS_KEY=#"),
        ("AccountName=x;AccountKey=abcd/efg==;EndpointSuffix=y", "AccountName=x;AccountKey=#;EndpointSuffix=y"),
        ("DD_API_KEY: 0a1b2c3d", "DD_API_KEY: #"),
        ('password: str = "x"', 'password: str = "#"'),
        ("the password is hunter2", "the password is #"),
    ],
)
def test_a_secret_is_known_by_its_name_or_place(text: str, left: str) -> None:
    assert without_secrets(text) == left.replace("#", REDACTED)


@pytest.mark.parametrize(
    "text",
    [
        "Fixed in 2929e84c0ffee2929e84c0ffee2929e84c0ffee0, see e0c737b.",
        "The run 0190a5f2-7b1c-7def-8a01-23456789abcd took 3 s.",
        "sha256:" + "0a1b2c3d" * 8,
        "The token is expired, and the password is required.",
        "Basic authentication and bearer credentials are described in RFC 6750.",
        "We use sk-learn-contrib-extensions and pypi-publish-action-for-our-packages.",
        "Pass --token to the command; --password-stdin reads it.",
        "def login(user: str, password: str, token: str | None = None) -> bool:",
        "token = get_token()",
        'api_key = os.environ["OPENAI_API_KEY"]',
        "api_key: ${OPENAI_API_KEY}",
        "max_tokens=1000, total_tokens: 250, token_count = 7",
        "primary_key=True, cache_key = 'user:1', idempotency key: order-17",
        "PWD=/home/ann/project",
        "docker run -u 1000:1000 -p 127.0.0.1:8080:80 image",
        "See https://example.com:8080/a@b and http://localhost:3000.",
        "git@github.com:org/repo.git",
    ],
)
def test_prose_hashes_ids_and_code_are_left_alone(text: str) -> None:
    assert without_secrets(text) == text


def within(value: Any, *wanted: Any, kept: frozenset[str] = frozenset()) -> Any:
    redact = redactor(wanted)
    assert redact is not None
    return redacted_values(value, redact, kept)


def test_values_are_redacted_by_their_keys() -> None:
    args = {
        "user": "ann",
        "password": "x",
        "pin": {"apiKey": 1234, "tokens": 12},
        "credentials": {"login": ["ann", "pw"]},
        "secret": None,
        "command": ["deploy", "--token", "x", "--fast"],
    }

    assert within(args, "secrets") == {
        "user": "ann",
        "password": REDACTED,
        "pin": {"apiKey": REDACTED, "tokens": 12},
        "credentials": {"login": [REDACTED, REDACTED]},
        "secret": None,
        "command": ["deploy", "--token", REDACTED, "--fast"],
    }
    assert within(args, "emails") == args


def test_all_leaves_no_free_text_in_fields_that_are_kept() -> None:
    message = {
        "name": "dev",
        "id": "Refunds go to the queue refunds-v2",
        "tool_calls": [{"name": "search", "args": {"name": "refunds", "Which queue is it now?": "refunds"}}],
    }

    assert within(message, "all", kept=frozenset(("name", "id"))) == {
        "name": "dev",
        "id": REDACTED,
        "tool_calls": [{"name": "search", "args": {"name": REDACTED, REDACTED: REDACTED}}],
    }
