"""The formats of secrets, one row each.

No pattern reads a stretch of text more than a fixed number of times: a repetition is either the end of its pattern,
bounded, or cannot contain the start of another match.
"""

from __future__ import annotations

from typing import NamedTuple


class SecretFormat(NamedTuple):
    """A secret that is recognised by its form, wherever it stands."""

    name: str
    pattern: str
    """Case is ignored unless the pattern says otherwise. It starts where no letter or digit precedes."""
    documented: str
    """Where the provider describes the format, or who does."""


# A name in kebab case, such as sk-learn-contrib, is no key: keys have digits or capitals.
_MIXED = r"(?=(?-i:[a-z_\-]{0,40}+[A-Z0-9]))"
_HEX32 = r"[0-9a-f]{32}(?![0-9a-z])"

SECRET_FORMATS: tuple[SecretFormat, ...] = (
    SecretFormat(
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r".*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
        "RFC 7468; OpenPGP: RFC 9580, ASCII armor",
    ),
    SecretFormat("age", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}+", "age, format specification"),
    SecretFormat(
        "JSON web token", r"(?<!-)eyJ[\w\-]{8,}+\.[\w\-]*+\.[\w\-]*+(?:\.[\w\-]*+){0,2}", "RFC 7519, RFC 7516"
    ),
    SecretFormat("Anthropic", r"sk-ant-[\w\-]{16,}+", "Anthropic docs, API keys"),
    SecretFormat(
        "OpenAI", rf"[spr]k-{_MIXED}[\w\-]{{16,}}+", "OpenAI docs, API keys; DeepSeek, OpenRouter and Langfuse alike"
    ),
    SecretFormat("Stripe", r"(?:sk|rk|pk)_(?:live|test|prod)_\w{10,}+", "Stripe docs, API keys"),
    SecretFormat("Stripe webhook", r"whsec_[\w+/=]{20,}+", "Stripe docs, webhook signatures"),
    SecretFormat("ElevenLabs", r"[spr]k_[0-9a-z]{16,}+", "ElevenLabs docs, authentication"),
    SecretFormat("GitHub", r"(?:gh[pousr]_[A-Za-z0-9]|github_pat_\w)\w{19,}+", "GitHub docs, token formats"),
    SecretFormat(
        "GitLab",
        r"gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[\w.\-]{16,}+",
        "GitLab docs, token overview",
    ),
    SecretFormat("Slack", r"(?:xox[a-z](?:\.xox[a-z])?|xapp)-[\w\-]{10,}+", "Slack docs, token types"),
    SecretFormat("Slack webhook", r"hooks\.slack\.com/services/[\w/]{20,}+", "Slack docs, incoming webhooks"),
    SecretFormat(
        "AWS", r"(?:AKIA|ASIA|ABIA|ACCA)(?-i:[A-Z0-9]{16})(?![A-Za-z0-9])", "AWS IAM user guide, unique identifiers"
    ),
    SecretFormat("Google", r"AIza[\w\-]{30,}+", "Google Cloud docs, API keys"),
    SecretFormat("Google OAuth", r"(?:ya29\.|GOCSPX-)[\w\-]{20,}+", "Google Identity docs, OAuth 2.0"),
    SecretFormat("SendGrid", r"SG\.[\w\-]{16,}+\.[\w\-]{16,}+", "SendGrid docs, API keys"),
    SecretFormat("Twilio", rf"SK{_HEX32}", "Twilio docs, API keys"),
    SecretFormat("Mailgun", rf"key-{_HEX32}", "Mailgun docs, authentication"),
    SecretFormat("Mailchimp", r"[0-9a-f]{32}-us\d{1,2}(?!\w)", "Mailchimp docs, API keys"),
    SecretFormat("npm", r"npm_[A-Za-z0-9]{30,}+", "npm docs, access tokens"),
    SecretFormat("PyPI", rf"pypi-{_MIXED}[\w\-]{{30,}}+", "PyPI help, API tokens"),
    SecretFormat("RubyGems", r"rubygems_[0-9a-f]{32,}+", "RubyGems guides, API keys"),
    SecretFormat("Docker", r"dckr_[a-z]{2,4}_[\w\-]{20,}+", "Docker docs, access tokens"),
    SecretFormat("Hugging Face", r"(?:hf|api_org)_[A-Za-z0-9]{20,}+", "Hugging Face docs, user access tokens"),
    SecretFormat("Groq", r"gsk_[A-Za-z0-9]{20,}+", "Groq docs, API keys"),
    SecretFormat("xAI", r"xai-[A-Za-z0-9]{20,}+", "xAI docs, API keys"),
    SecretFormat("Perplexity", r"pplx-[A-Za-z0-9]{20,}+", "Perplexity docs, API keys"),
    SecretFormat("Replicate", r"r8_[A-Za-z0-9]{20,}+", "Replicate docs, API tokens"),
    SecretFormat("NVIDIA", r"nvapi-[\w\-]{20,}+", "NVIDIA NIM docs, API keys"),
    SecretFormat("Tavily", rf"tvly-{_MIXED}[\w\-]{{16,}}+", "Tavily docs, API keys"),
    SecretFormat("Pinecone", r"pcsk_\w{20,}+", "Pinecone docs, API keys"),
    SecretFormat("LangSmith", r"lsv2_[a-z]{2}_\w{20,}+", "LangSmith docs, API keys"),
    SecretFormat("DigitalOcean", r"do[opr]_v1_[0-9a-f]{32,}+", "DigitalOcean docs, personal access tokens"),
    SecretFormat("Shopify", r"shp[a-z]{2,3}_[0-9a-f]{20,}+", "Shopify docs, access tokens"),
    SecretFormat(
        "Microsoft Entra", r"(?-i:[\w~.\-]{3}\dQ~[\w~.\-]{31,34})(?![\w~\-])", "GitHub docs, secret scanning patterns"
    ),
    SecretFormat("Azure SAS", r"sig=[\w%+/\-]{20,}+=*+", "Azure Storage docs, shared access signatures"),
    SecretFormat("Linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}+", "Linear docs, API"),
    SecretFormat("Notion", r"(?:ntn|secret)_[A-Za-z0-9]{40,}+", "Notion docs, authorization"),
    SecretFormat("Telegram", r"(?:bot)?\d{6,12}:A[\w\-]{34}(?![\w\-])", "Telegram Bot API, authorizing your bot"),
    SecretFormat(
        "Discord",
        r"(?-i:[MNO][\w\-]{22,27}\.[\w\-]{6}\.[\w\-]{27,38})(?![\w\-])",
        "Discord docs, API reference, authentication",
    ),
    SecretFormat(
        "Discord webhook", r"discord(?:app)?\.com/api/webhooks/\d{5,20}/[\w\-]{20,}+", "Discord docs, webhook"
    ),
    SecretFormat("Atlassian", r"AT[AC]TT3[\w\-=]{20,}+", "Atlassian docs, API tokens"),
    SecretFormat("Databricks", rf"dapi{_HEX32}", "Databricks docs, personal access tokens"),
    SecretFormat("HashiCorp Vault", r"hv[sbr]\.[\w\-]{20,}+", "Vault docs, tokens"),
    SecretFormat("HCP Terraform", r"[A-Za-z0-9]{14}\.atlasv1\.[\w\-]{40,}+", "GitHub docs, secret scanning patterns"),
    SecretFormat("Grafana", r"gl(?:sa|c)_[\w+/=]{20,}+", "Grafana docs, service account tokens"),
    SecretFormat("New Relic", r"NRAK-[A-Z0-9]{20,}+", "New Relic docs, API keys"),
    SecretFormat("Sentry", r"sntry[su]_[\w+/=\-]{20,}+", "Sentry docs, auth tokens"),
    SecretFormat("Supabase", r"(?:sbp|sb_secret)_\w{20,}+", "Supabase docs, API keys"),
    SecretFormat("Postman", r"PMAK-[0-9a-f\-]{20,}+", "Postman docs, API keys"),
    SecretFormat("Airtable", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{32,}+", "Airtable docs, personal access tokens"),
    SecretFormat("Figma", r"figd_[\w\-]{20,}+", "Figma docs, personal access tokens"),
    SecretFormat("Fireworks", rf"fw_{_MIXED}[A-Za-z0-9]{{20,}}+", "Fireworks docs, API keys"),
    SecretFormat("Together", r"tgp_v1_[\w\-]{30,}+", "Together docs, API keys"),
    SecretFormat("Cerebras", rf"csk-{_MIXED}[A-Za-z0-9]{{30,}}+", "Cerebras docs, API keys"),
    SecretFormat("Voyage", rf"pa-{_MIXED}[\w\-]{{40,}}+", "Voyage docs, API keys"),
    SecretFormat("Firecrawl", rf"fc-{_HEX32}", "Firecrawl docs, API keys"),
    SecretFormat("Jina", rf"jina_{_MIXED}[\w\-]{{40,}}+", "Jina docs, API keys"),
    SecretFormat("E2B", r"e2b_[0-9a-f]{32,}+", "E2B docs, API keys"),
    SecretFormat("Resend", rf"re_{_MIXED}[A-Za-z0-9]{{8}}_[A-Za-z0-9]{{20,}}+", "Resend docs, API keys"),
    SecretFormat(
        "Doppler",
        r"dp\.(?:pt|st|ct|scim|audit|sa|said)\.(?:[\w\-]{1,40}\.)?[A-Za-z0-9]{40,}+",
        "Doppler docs, auth tokens",
    ),
    SecretFormat(
        "PlanetScale", r"pscale_(?:pw|tkn|oauth)_[\w.\-]{32,}+", "PlanetScale docs, passwords and service tokens"
    ),
    SecretFormat("Fly", rf"fm[12][ar]?_{_MIXED}[\w+/=\-]{{40,}}+", "Fly docs, access tokens"),
    SecretFormat("Netlify", rf"nf[pcuob]_{_MIXED}[A-Za-z0-9]{{36,}}+", "Netlify docs, access tokens"),
    SecretFormat("Vercel", rf"vc[pirak]_{_MIXED}[A-Za-z0-9]{{24,}}+", "Vercel docs, tokens"),
    SecretFormat("Cloudflare", rf"cf(?:ut|at|k)_{_MIXED}[A-Za-z0-9]{{40,}}+", "Cloudflare docs, API token formats"),
    SecretFormat("Buildkite", r"bkua_[0-9a-f]{40,}+", "Buildkite docs, API access tokens"),
    SecretFormat("HubSpot", r"pat-(?:na|eu|ap)\d-[0-9a-f\-]{36}(?![\w\-])", "HubSpot docs, private apps"),
    SecretFormat("Square", r"(?-i:EAAA[\w\-]{56,}+|sq0(?:csp|atp|idb)-[\w\-]{22,}+)", "Square docs, access tokens"),
    SecretFormat("Dropbox", r"sl\.(?:u\.)?[\w\-]{100,}+", "Dropbox docs, OAuth guide"),
    SecretFormat("Asana", r"[12]/\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32,}+", "Asana docs, personal access tokens"),
    SecretFormat("1Password", r"ops_eyJ[\w+/=\-]{40,}+", "1Password docs, service accounts"),
    SecretFormat("Tailscale", r"tskey-[a-z]{2,12}-[\w\-]{16,}+", "Tailscale docs, key prefixes"),
    SecretFormat("Render", rf"rnd_{_MIXED}[A-Za-z0-9]{{28,}}+", "Render docs, API keys"),
    SecretFormat("Prefect", rf"pn[ub]_{_MIXED}[A-Za-z0-9]{{36}}(?!\w)", "Prefect docs, API keys"),
    SecretFormat("Pulumi", r"pul-[0-9a-f]{40}(?!\w)", "Pulumi docs, access tokens"),
    SecretFormat("PostHog", rf"ph[xsr]_{_MIXED}[A-Za-z0-9]{{40,}}+", "PostHog docs, personal API keys"),
    SecretFormat("Contentful", r"CFPAT-[\w\-]{40,}+", "Contentful docs, personal access tokens"),
    SecretFormat("Weights & Biases", r"wandb_v1_[\w\-]{40,}+", "Weights & Biases docs, API keys"),
)

SECRET_NAMES = (
    r"(?:api|access|secret|private|account|signing|encryption|master|license|subscription|session|storage|webhook"
    r"|auth|app|application|client)[_\- ]?key"
    # PWD is also the working directory of a shell.
    r"|secret|token|passw(?:or)?d|passphrase|passcode|pwd(?![\"']?\s{0,2}[:=]\s{0,2}[~/.])|credentials?|authorization"
)
"""What the names of secret values end with."""
