r"""The formats of tokens, as those who issue them document or show them.

Every format names the words that must stand in a text before its pattern is tried; the group of the pattern is what is
secret. Patterns are RE2's and see bytes: their work is linear, and `\w` and `\b` are those of ASCII.
"""

import attrs

_HEX = "[0-9a-fA-F]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_ALNUM = "[A-Za-z0-9]"
_URLSAFE = "[A-Za-z0-9_-]"
_BASE64 = "[A-Za-z0-9+/]"


@attrs.frozen
class TokenFormat:
    """How the tokens of one kind look."""

    id: str
    pattern: str
    """With one group: the secret."""
    words: tuple[str, ...]
    """In lower case; one of them stands in every text that has such a token."""
    entropy: float = 2.5
    """How many bits a character of the secret has at least; less is a placeholder."""
    is_named: bool = False
    """Whether only a name near it tells that it is a secret: stop words are looked at more strictly."""
    has_digit: bool = False
    """Whether a secret without a digit is a word of a program."""


def _prefixed(id: str, prefix: str, rest: str, *words: str, entropy: float = 2.5) -> TokenFormat:
    r"""Return a format that its first characters tell: *prefix* (as it stands) and *rest* (a pattern)."""
    literal = "".join(f"\\{one}" if one in ".$/-" else one for one in prefix)
    return TokenFormat(id, rf"(?:^|[^0-9A-Za-z_+])({literal}{rest})", words or (prefix.lower(),), entropy)


def _whole(id: str, pattern: str, *words: str, entropy: float = 2.5, has_digit: bool = False) -> TokenFormat:
    """Return a format whose pattern says all: with a group, or all of it is the secret."""
    group = pattern if "(" in pattern.replace("(?", "") else f"({pattern})"
    return TokenFormat(id, rf"(?:^|[^0-9A-Za-z_+]){group}", words, entropy, has_digit=has_digit)


def _named(id: str, name: str, token: str, *words: str, entropy: float = 3.0) -> TokenFormat:
    """Return a format that nothing but a name before it tells: `adafruit_key = "..."`."""
    between = r"[\w .-]{0,30}[\"'`\]\\)]{0,4}[ \t]{0,20}(?:=>|:=|\|\||->|=|:|,|>)[ \t]{0,20}[\"'`=\\({\[]{0,4}[ \t]?"
    pattern = rf"(?:^|[^A-Za-z])(?i:{name}){between}({token})(?:[^0-9A-Za-z_/+=-]|$)"
    return TokenFormat(id, pattern, words or (name,), entropy, is_named=True)


_BY_PREFIX = (
    _prefixed("1password-service-account", "ops_eyJ", f"{_BASE64}{{250,}}={{0,3}}"),
    _prefixed("adobe-client-secret", "p8e-", f"{_ALNUM}{{32}}"),
    _prefixed("age-secret-key", "AGE-SECRET-KEY-1", "[02-9AC-HJ-NP-Za]{58}"),
    _prefixed("alibaba-access-key", "LTAI", f"{_ALNUM}{{20}}"),
    _prefixed("anthropic-admin-key", "sk-ant-admin01-", f"{_URLSAFE}{{93}}AA"),
    _prefixed("anthropic-api-key", "sk-ant-api03-", f"{_URLSAFE}{{93}}AA"),
    _prefixed("anthropic-oauth-token", "sk-ant-o", f"(?:at|rt)01-{_URLSAFE}{{80,}}"),
    _prefixed("apify-token", "apify_api_", f"{_ALNUM}{{34,40}}"),
    _prefixed("artifactory-api-key", "AKCp", f"{_ALNUM}{{69}}"),
    _prefixed("artifactory-reference-token", "cmVmd", f"{_ALNUM}{{59}}"),
    _prefixed("atlassian-api-token", "ATATT3", f"{_URLSAFE}{{180,}}={_ALNUM}{{8}}"),
    _prefixed("atlassian-access-key", "ATCTT3", f"{_URLSAFE}{{60,}}"),
    _prefixed("aws-bedrock-key", "ABSK", f"{_BASE64}{{109,269}}={{0,2}}"),
    _prefixed("aws-bedrock-session-key", "bedrock-api-key-", f"{_BASE64}{{40,}}={{0,2}}"),
    _prefixed("bitbucket-app-password", "ATBB", f"{_ALNUM}{{28}}(?:{_ALNUM}{{4}})?"),
    _prefixed("brevo-api-key", "xkeysib-", f"{_HEX}{{64}}-{_ALNUM}{{16}}"),
    _prefixed("brevo-smtp-key", "xsmtpsib-", f"{_HEX}{{64}}-{_ALNUM}{{16}}"),
    _prefixed("buildkite-token", "bkua_", f"{_HEX}{{40}}"),
    _prefixed("cerebras-api-key", "csk-", "[a-z0-9]{48}"),
    _prefixed("circleci-token", "CCIPAT_", f"{_ALNUM}{{22}}_{_HEX}{{40}}"),
    _prefixed("clickhouse-key", "4b1d", f"{_ALNUM}{{38}}", entropy=3.5),
    _prefixed("clojars-token", "CLOJARS_", "[a-zA-Z0-9]{60}"),
    _prefixed("cloudflare-origin-ca-key", "v1.0-", f"{_HEX}{{24}}-{_HEX}{{146}}"),
    _prefixed("contentful-token", "CFPAT-", f"{_URLSAFE}{{43}}"),
    _prefixed("crates-token", "cio", f"{_ALNUM}{{32}}", entropy=3.8),
    _prefixed("databricks-token", "dapi", f"{_HEX}{{32}}(?:-\\d)?"),
    _prefixed("defined-networking-key", "dnkey-", "[a-zA-Z0-9=_-]{26}-[a-zA-Z0-9=_-]{52}"),
    _prefixed("deno-token", "dd", f"[pw]_{_ALNUM}{{36}}", "ddp_", "ddw_"),
    _prefixed("digitalocean-token", "do", f"[opr]_v1_{_HEX}{{64}}", "doo_v1_", "dop_v1_", "dor_v1_"),
    _prefixed("dnsimple-token", "dnsimple_", f"[ua]_{_ALNUM}{{32,}}"),
    _prefixed("docker-token", "dckr_", f"(?:pat|oat)_{_URLSAFE}{{27,36}}"),
    _prefixed("doppler-token", "dp.", f"(?:pt|st|ct|sa|scim|audit)\\.(?:[a-z0-9_-]{{2,35}}\\.)?{_ALNUM}{{40,44}}"),
    _prefixed("dropbox-token", "sl.", f"(?:u\\.)?{_URLSAFE}{{130,}}"),
    _prefixed("duffel-token", "duffel_", "(?:test|live)_[a-zA-Z0-9_=-]{43}"),
    _prefixed("dynatrace-token", "dt0", "[a-z]\\d{2}\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}"),
    _prefixed("easypost-key", "EZ", f"[AT]K{_ALNUM}{{54}}", "ezak", "eztk"),
    _prefixed("elevenlabs-key", "sk_", f"{_HEX}{{48}}"),
    _prefixed("facebook-access-token", "EAA", f"[MC]{_ALNUM}{{80,}}", "eaam", "eaac"),
    _prefixed("figma-token", "fig", f"(?:d|u|ur|o|or|uh|oh)_{_URLSAFE}{{40,}}", "figd_", "figu", "figo"),
    _prefixed("flutterwave-key", "FLW", f"(?:PUB|SEC)K(?:_TEST)?-{_HEX}{{32}}-X", "flwpubk", "flwseck"),
    _prefixed("flyio-access-token", "fo1_", f"{_URLSAFE}{{43}}"),
    _prefixed("flyio-macaroon", "fm", f"[12][ar]?_{_BASE64}{{100,}}={{0,3}}", "fm1_", "fm1a_", "fm1r_", "fm2_"),
    _prefixed("frameio-token", "fio-u-", f"{_URLSAFE}{{64}}"),
    _prefixed("github-app-token", "gh", f"[us]_{_ALNUM}{{36,}}", "ghu_", "ghs_"),
    _prefixed("github-fine-grained-token", "github_pat_", "\\w{82}"),
    _prefixed("github-oauth-token", "gho_", f"{_ALNUM}{{36}}"),
    _prefixed("github-personal-token", "ghp_", f"{_ALNUM}{{36}}"),
    _prefixed("github-refresh-token", "ghr_", f"{_ALNUM}{{36,}}"),
    _prefixed("gitlab-agent-token", "glagent-", f"{_URLSAFE}{{50}}"),
    _prefixed("gitlab-ci-job-token", "glcbt-", f"(?:{_ALNUM}{{1,5}}_)?{_URLSAFE}{{20}}"),
    _prefixed("gitlab-deploy-token", "gldt-", f"{_URLSAFE}{{20}}"),
    _prefixed("gitlab-feature-flag-token", "glffct-", f"{_URLSAFE}{{20}}"),
    _prefixed("gitlab-feed-token", "glft-", f"{_URLSAFE}{{20}}"),
    _prefixed("gitlab-incoming-mail-token", "glimt-", f"{_URLSAFE}{{25}}"),
    _prefixed("gitlab-oauth-secret", "gloas-", f"{_URLSAFE}{{64}}"),
    _prefixed("gitlab-personal-token", "glpat-", f"(?:{_URLSAFE}{{27}}\\.[0-9a-z]{{2}}\\.[0-9a-z]{{7,9}}|{_URLSAFE}{{20}})"),
    _prefixed("gitlab-runner-registration", "GR1348941", f"{_URLSAFE}{{20}}"),
    _prefixed("gitlab-runner-token", "glrt-", f"(?:t\\d_)?{_URLSAFE}{{20}}(?:\\.[0-9a-z.]{{9,}})?"),
    _prefixed("gitlab-scim-token", "glsoat-", f"{_URLSAFE}{{20}}"),
    _prefixed("gitlab-trigger-token", "glptt-", f"{_HEX}{{40}}"),
    _prefixed("google-api-key", "AIza", f"{_URLSAFE}{{35}}", entropy=3.0),
    _prefixed("google-oauth-access-token", "ya29.", f"{_URLSAFE}{{40,}}"),
    _prefixed("google-oauth-refresh-token", "1//0", f"{_URLSAFE}{{40,}}"),
    _prefixed("google-oauth-secret", "GOCSPX-", f"{_URLSAFE}{{28}}"),
    _prefixed("grafana-api-key", "eyJrIjoi", f"{_BASE64}{{70,400}}={{0,3}}"),
    _prefixed("grafana-cloud-token", "glc_", f"{_BASE64}{{32,400}}={{0,3}}"),
    _prefixed("grafana-service-account", "glsa_", f"{_ALNUM}{{32}}_{_HEX}{{8}}"),
    _prefixed("groq-api-key", "gsk_", f"{_ALNUM}{{52}}"),
    _prefixed("heroku-api-key", "HRKU-", f"{_URLSAFE}{{36,70}}"),
    _prefixed("honeycomb-key", "hc", "(?:[abx]i|[ax]l)k_[a-z0-9]{58}", "hcaik_", "hcbik_", "hcxik_", "hcalk_", "hcxlk_"),
    _prefixed("huggingface-organization-token", "api_org_", "[a-zA-Z]{34}", entropy=3.0),
    _prefixed("huggingface-token", "hf_", "[a-zA-Z0-9]{34,40}", entropy=3.0),
    _prefixed("infracost-key", "ico-", f"{_ALNUM}{{32}}", entropy=3.5),
    _prefixed("inngest-signing-key", "signkey-", f"(?:prod|test|branch)-{_HEX}{{32,64}}"),
    _prefixed("intra42-secret", "s-s4t2", f"(?:ud|af)-{_HEX}{{64}}"),
    _prefixed("klaviyo-private-key", "pk_", f"{_HEX}{{34}}"),
    _prefixed("langfuse-secret-key", "sk-lf-", _UUID),
    _prefixed("langsmith-key", "lsv2_", f"(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{10}}"),
    _prefixed("linear-api-key", "lin_api_", f"{_ALNUM}{{40}}"),
    _prefixed("linear-oauth-token", "lin_oauth_", f"{_HEX}{{64}}"),
    _prefixed("mailersend-token", "mlsn.", f"{_HEX}{{64}}"),
    _prefixed("mailgun-key", "key-", f"{_HEX}{{32}}"),
    _prefixed("mailgun-public-key", "pubkey-", f"{_HEX}{{32}}"),
    _prefixed("mapbox-secret-token", "sk.eyJ", f"{_URLSAFE}{{60,120}}\\.{_URLSAFE}{{22}}"),
    _prefixed("mercadopago-token", "APP_USR-", f"\\d{{10,20}}-\\d{{6}}-{_HEX}{{32}}-\\d{{4,12}}"),
    _prefixed("netlify-token", "nf", f"[pcoub]_{_ALNUM}{{36}}", "nfp_", "nfc_", "nfo_", "nfu_", "nfb_"),
    _prefixed("neon-api-key", "napi_", "[a-z0-9]{60,}"),
    _prefixed("newrelic-browser-key", "NRJS-", f"{_HEX}{{19}}"),
    _prefixed("newrelic-insert-key", "NRII-", f"{_URLSAFE}{{32}}"),
    _prefixed("newrelic-user-key", "NRAK-", "[A-Za-z0-9]{27}"),
    _prefixed("notion-legacy-token", "secret_", f"{_ALNUM}{{43}}", entropy=4.0),
    _prefixed("notion-token", "ntn_", f"\\d{{11}}{_ALNUM}{{35}}"),
    _prefixed("npm-token", "npm_", f"{_ALNUM}{{36}}"),
    _prefixed("nuget-key", "oy2", "[a-z0-9]{43}", entropy=3.2),
    _prefixed("nvidia-key", "nvapi-", f"{_URLSAFE}{{60,70}}"),
    _prefixed("octopus-api-key", "API-", "[A-Z0-9]{26}", entropy=3.0),
    _prefixed("onfido-token", "api_", f"(?:live|sandbox)(?:_us|_ca)?\\.{_URLSAFE}{{11}}\\.{_URLSAFE}{{32}}", "api_live", "api_sandbox"),
    _prefixed("openai-admin-key", "sk-admin-", f"{_URLSAFE}{{40,180}}"),
    _prefixed("openai-project-key", "sk-proj-", f"{_URLSAFE}{{40,180}}"),
    _prefixed("openai-service-key", "sk-svcacct-", f"{_URLSAFE}{{40,180}}"),
    _prefixed("openai-key", "sk-", f"{_ALNUM}{{20}}T3BlbkFJ{_ALNUM}{{20}}", "t3blbkfj"),
    _prefixed("openrouter-key", "sk-or-v1-", f"{_HEX}{{64}}"),
    _prefixed("openshift-token", "sha256~", f"{_URLSAFE}{{43}}"),
    _prefixed("ory-token", "ory_", f"(?:at|rt|st|pat|apikey)_{_URLSAFE}{{32,}}"),
    _prefixed("paddle-key", "pdl_", "(?:live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}"),
    _prefixed("paypal-braintree-token", "access_token$", f"(?:production|sandbox)\\$[a-z0-9]{{16}}\\${_HEX}{{32}}"),
    _prefixed("perplexity-key", "pplx-", f"{_ALNUM}{{48}}"),
    _prefixed("pinecone-key", "pcsk_", f"{_ALNUM}{{5,6}}_{_ALNUM}{{63}}"),
    _prefixed("plaid-access-token", "access-", f"(?:sandbox|development|production)-{_UUID}"),
    _prefixed("planetscale-oauth-token", "pscale_oauth_", "[\\w=.-]{32,64}"),
    _prefixed("planetscale-password", "pscale_pw_", "[\\w=.-]{32,64}"),
    _prefixed("planetscale-token", "pscale_tkn_", "[\\w=.-]{32,64}"),
    _prefixed("polar-token", "polar_", f"(?:oat|pat|at_u|rst)_{_ALNUM}{{32,}}"),
    _prefixed("posthog-key", "phx_", f"{_ALNUM}{{43,}}"),
    _prefixed("postman-key", "PMAK-", f"{_HEX}{{24}}-{_HEX}{{34}}"),
    _prefixed("prefect-key", "pn", f"[ub]_{_ALNUM}{{36}}", "pnu_", "pnb_"),
    _prefixed("pulumi-token", "pul-", f"{_HEX}{{40}}"),
    _prefixed("pypi-token", "pypi-AgEI", f"{_URLSAFE}{{50,}}"),
    _prefixed("razorpay-key", "rzp_", f"(?:live|test)_{_ALNUM}{{14}}"),
    _prefixed("readme-key", "rdme_", "[a-z0-9]{70}"),
    _prefixed("render-key", "rnd_", f"{_ALNUM}{{28,32}}", entropy=3.5),
    _prefixed("replicate-token", "r8_", f"{_ALNUM}{{37}}"),
    _prefixed("resend-key", "re_", f"{_ALNUM}{{8}}_{_ALNUM}{{24}}", entropy=3.5),
    _prefixed("rootly-key", "rootly_", f"{_HEX}{{64}}"),
    _prefixed("rubygems-key", "rubygems_", f"{_HEX}{{48}}"),
    _prefixed("runpod-key", "rpa_", "[A-Z0-9]{40,46}\\w{0,6}"),
    _prefixed("scalingo-token", "tk-us-", f"{_URLSAFE}{{48}}"),
    _prefixed("sendgrid-key", "SG.", f"{_URLSAFE}{{20,24}}\\.{_URLSAFE}{{39,50}}"),
    _prefixed("sentry-organization-token", "sntrys_eyJ", f"{_BASE64}{{60,}}={{0,2}}_{_BASE64}{{43}}"),
    _prefixed("sentry-user-token", "sntryu_", f"{_HEX}{{64}}"),
    _prefixed("settlemint-token", "sm_", f"(?:aat|pat|sat)_{_ALNUM}{{16}}", "sm_aat_", "sm_pat_", "sm_sat_"),
    _prefixed("shippo-token", "shippo_", f"(?:live|test)_{_HEX}{{40}}"),
    _prefixed("shopify-token", "shp", f"(?:at|ca|pa|ss|ua|tka)_{_HEX}{{32}}", "shpat_", "shpca_", "shppa_", "shpss_", "shpua_", "shptka_"),
    _prefixed("slack-app-token", "xapp-", "\\d-[A-Z0-9]{8,14}-\\d{10,14}-[a-z0-9]{40,}"),
    _prefixed("slack-bot-token", "xoxb-", f"\\d{{8,14}}-(?:\\d{{8,14}}-)?{_ALNUM}{{18,40}}"),
    _prefixed("slack-configuration-token", "xoxe", f"(?:\\.xox[bp])?-\\d-{_ALNUM}{{140,}}"),
    _prefixed("slack-legacy-token", "xox", f"[ars]-(?:\\d-)?\\d{{8,14}}(?:-{_ALNUM}{{8,64}}){{1,4}}", "xoxa-", "xoxr-", "xoxs-", entropy=3.0),
    _prefixed("slack-user-token", "xoxp-", f"(?:\\d{{9,14}}-){{2,3}}{_ALNUM}{{24,40}}"),
    _prefixed("slack-workflow-token", "xwfp-", "[\\w-]{30,}"),
    _prefixed("sonar-token", "sq", f"[upa]_{_HEX}{{40}}", "squ_", "sqp_", "sqa_"),
    _prefixed("sourcegraph-token", "sgp_", f"(?:(?:local|{_HEX}{{16}})_)?{_HEX}{{40}}"),
    _prefixed("square-access-token", "EAAA", f"{_URLSAFE}{{60}}", entropy=3.5),
    _prefixed("square-oauth-secret", "sq0", f"(?:csp|atp|idp)-{_URLSAFE}{{22,43}}"),
    _prefixed("stripe-key", "", f"[sr]k_(?:live|test|prod)_{_ALNUM}{{10,99}}", "sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"),
    _prefixed("stripe-webhook-secret", "whsec_", f"{_BASE64}{{32,}}={{0,2}}"),
    _prefixed("stytch-secret", "secret-", f"(?:live|test)-{_URLSAFE}{{36}}=?"),
    _prefixed("supabase-secret-key", "sb_secret_", f"{_URLSAFE}{{20,}}"),
    _prefixed("supabase-token", "sbp_", f"{_HEX}{{40}}"),
    _prefixed("tailscale-key", "tskey-", f"(?:auth|api|client|scim|webhook)-{_ALNUM}{{8,24}}(?:CNTRL)?-{_ALNUM}{{16,40}}"),
    _prefixed("tavily-key", "tvly-", f"(?:dev-|prod-)?{_ALNUM}{{32}}"),
    _prefixed("thunderstore-token", "tss_", "[\\w-]{30,}"),
    _prefixed("together-key", "tgp_v1_", f"{_URLSAFE}{{43}}"),
    _prefixed("trello-token", "ATTA", f"{_HEX}{{64}}\\w{{0,10}}"),
    _prefixed("trigger-dev-key", "tr_", f"(?:dev|prod|stg|preview)_{_ALNUM}{{20,24}}", "tr_dev_", "tr_prod_", "tr_stg_", "tr_preview_"),
    _prefixed("twilio-api-key", "SK", "[0-9a-f]{32}", "sk", entropy=3.0),
    _prefixed("typeform-token", "tfp_", f"{_URLSAFE}{{40,60}}"),
    _prefixed("vault-batch-token", "hvb.", f"{_URLSAFE}{{90,300}}"),
    _prefixed("vault-recovery-token", "hvr.", f"{_URLSAFE}{{90,300}}"),
    _prefixed("vault-service-token", "hvs.", f"{_URLSAFE}{{24,300}}"),
    _prefixed("voyage-key", "pa-", f"{_URLSAFE}{{43}}", entropy=4.2),
    _prefixed("wakatime-key", "waka_", _UUID),
    _prefixed("xai-key", "xai-", f"{_ALNUM}{{80}}"),
    _prefixed("xata-key", "xau_", f"{_ALNUM}{{40,}}"),
    _prefixed("yandex-api-key", "AQVN", f"{_URLSAFE}{{35,38}}"),
    _prefixed("yandex-iam-token", "t1.", f"[A-Z0-9a-z_-]{{60,}}={{0,2}}\\.{_URLSAFE}{{86}}={{0,2}}"),
    _prefixed("zuplo-key", "zpka_", "\\w{40,}"),
)  # fmt: skip

_BY_SHAPE = (
    _whole("1password-secret-key", "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}", "a3-"),
    _whole("airtable-token", f"pat{_ALNUM}{{14}}\\.{_HEX}{{64}}", "pat"),
    _whole("asana-token", f"[12]/\\d{{13,17}}(?:/\\d{{10,17}})?:{_HEX}{{32}}", "1/", "2/"),
    _whole("aws-access-key", "(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}", "a3t", "akia", "asia", "abia", "acca"),
    _whole("azure-client-secret", "[\\w~.]{3}\\dQ~[\\w~.-]{31,34}", "q~", entropy=3.0),
    _whole("azure-devops-token", f"{_ALNUM}{{76}}AZDO{_ALNUM}{{4}}", "azdo"),
    _whole("azure-storage-key", f"(?i:accountkey|sharedaccesskey)=({_BASE64}{{43,86}}={{1,2}})", "accountkey=", "sharedaccesskey="),
    _whole("azure-sas-signature", "(?i:sig)=([A-Za-z0-9%]{43,70}%3[dD])", "sig="),
    _whole("discord-bot-token", f"[MNO][A-Za-z0-9]{{23,27}}\\.{_URLSAFE}{{6}}\\.{_URLSAFE}{{27,38}}", "."),
    _whole("discord-webhook", f"discord(?:app)?\\.com/api/webhooks/\\d{{17,20}}/({_URLSAFE}{{60,70}})", "/api/webhooks/"),
    _whole("facebook-app-token", f"\\d{{15,16}}(?:\\||%7[cC]){_URLSAFE}{{27,40}}", "|", "%7c", entropy=3.0),
    _whole("harness-token", f"[ps]at\\.{_URLSAFE}{{22}}\\.{_HEX}{{24}}\\.{_ALNUM}{{20}}", "pat.", "sat."),
    _whole("hubspot-token", f"pat-(?:na|eu|ap)\\d-{_UUID}", "pat-na", "pat-eu", "pat-ap"),
    _whole("json-web-token", f"ey[JI]{_URLSAFE}{{14,}}\\.ey[JI]{_URLSAFE}{{14,}}\\.(?:{_URLSAFE}{{10,}}={{0,2}})?", "eyj", "eyi", entropy=3.0),
    _whole("launchdarkly-key", f"(?:sdk|api|mob)-{_UUID}", "sdk-", "api-", "mob-"),
    _whole("lob-key", f"(?:live|test)_(?:pub_)?{_HEX}{{35}}", "live_", "test_"),
    _whole("mailchimp-key", f"{_HEX}{{32}}-us\\d{{1,2}}", "-us"),
    _whole("maxmind-key", f"{_ALNUM}{{6}}_{_ALNUM}{{29}}_mmk", "_mmk"),
    _whole("private-key", "-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----(?:[\\s\\\\nr]*(?:Proc-Type|DEK-Info|Version|Comment):[^\\n]{0,200})*[\\s\\\\nr\"+',]*((?:[\\w+/=]{16,}[\\s\\\\\"+',]*)+[\\w+/=]{0,76})", "private key", entropy=3.5),
    _whole("slack-webhook", "hooks\\.slack\\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{43,80})", "hooks.slack.com"),
    _whole("teams-webhook", f"webhook\\.office(?:365)?\\.com/webhook(?:b2)?/({_UUID}@{_UUID}/IncomingWebhook/\\w{{32}}/{_UUID})", "incomingwebhook"),
    _whole("telegram-bot-token", f"(?:bot)?(\\d{{8,10}}:AA{_URLSAFE}{{32,34}})", ":aa"),
    _whole("terraform-token", f"{_ALNUM}{{14}}\\.(?i:atlasv1)\\.[\\w=-]{{60,70}}", "atlasv1"),
    _whole("twitter-bearer-token", "A{20,24}[A-Za-z0-9%]{80,100}", "aaaaaaaaaaaaaaaaaaaa", entropy=3.0),
    _whole("vault-legacy-token", f"s\\.{_ALNUM}{{24}}", "s.", entropy=3.9, has_digit=True),
    _whole("zapier-webhook", "hooks\\.zapier\\.com/hooks/catch/(\\d{5,9}/[a-z0-9]{6,10})", "hooks.zapier.com"),
)  # fmt: skip

_BY_NAME = (
    _named("adafruit-key", "adafruit", f"{_URLSAFE}{{32}}"),
    _named("algolia-key", "algolia", f"{_HEX}{{32}}"),
    _named("aws-secret-key", "aws[\\w.-]{0,20}(?:secret|sk)|secret_?access_?key", f"{_BASE64}{{40}}", "aws", "access_key", "accesskey", entropy=3.8),
    _named("beamer-token", "beamer", "b_[a-zA-Z0-9=_-]{44}"),
    _named("bitbucket-client", "bitbucket", f"{_ALNUM}{{32}}|[A-Za-z0-9_=-]{{64}}"),
    _named("bittrex-key", "bittrex", f"{_HEX}{{32}}"),
    _named("cloudflare-key", "cloudflare", f"[A-Za-z0-9_-]{{40}}|{_HEX}{{37}}"),
    _named("codecov-token", "codecov", f"{_UUID}|[a-z0-9]{{32}}"),
    _named("cohere-key", "cohere", f"{_ALNUM}{{40}}"),
    _named("coinbase-token", "coinbase", "[a-zA-Z0-9_-]{64}"),
    _named("confluent-key", "confluent", f"{_ALNUM}{{16}}|{_ALNUM}{{64}}"),
    _named("datadog-key", "datadog|dd_a(?:pi|pp)", f"{_HEX}{{40}}|{_HEX}{{32}}", "datadog", "dd_ap"),
    _named("discord-client-secret", "discord", f"{_URLSAFE}{{32}}|{_HEX}{{64}}"),
    _named("droneci-token", "drone_?ci", f"{_ALNUM}{{32}}", "drone"),
    _named("dropbox-app-secret", "dropbox", "[a-z0-9]{15}"),
    _named("etsy-token", "etsy", "[a-z0-9]{24}"),
    _named("facebook-secret", "facebook", f"{_HEX}{{32}}"),
    _named("fastly-token", "fastly", f"{_URLSAFE}{{32}}"),
    _named("finnhub-token", "finnhub", "[a-z0-9]{20}"),
    _named("flickr-token", "flickr", f"{_HEX}{{32}}"),
    _named("freshbooks-token", "freshbooks", f"{_HEX}{{64}}"),
    _named("gitter-token", "gitter", f"{_URLSAFE}{{40}}"),
    _named("gocardless-token", "gocardless", "live_[a-zA-Z0-9_=-]{40}"),
    _named("hashicorp-password", "administrator_login_password|password", "hvs\\.[\\w-]{24,}", "hvs."),
    _named("heroku-legacy-key", "heroku", _UUID),
    _named("intercom-token", "intercom", "[a-zA-Z0-9_=-]{60}"),
    _named("jira-token", "jira|atlassian|confluence", f"{_ALNUM}{{24}}", "jira", "atlassian", "confluence"),
    _named("kraken-token", "kraken", "[A-Za-z0-9/=_+-]{80,90}"),
    _named("kucoin-token", "kucoin", f"{_UUID}|{_HEX}{{24}}"),
    _named("linkedin-secret", "linked_?in", f"{_ALNUM}{{16}}|{_ALNUM}{{14}}", "linkedin", "linked_in"),
    _named("looker-token", "looker", f"{_ALNUM}{{24}}|{_ALNUM}{{20}}"),
    _named("mailgun-signing-key", "mailgun", f"{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}"),
    _named("mattermost-token", "mattermost", "[a-z0-9]{26}"),
    _named("messagebird-token", "message_?bird", f"[a-z0-9]{{25}}|{_UUID}", "messagebird", "message_bird"),
    _named("mistral-key", "mistral", f"{_ALNUM}{{32}}"),
    _named("new-york-times-key", "nytimes|new-york-times|newyorktimes", "[A-Za-z0-9_=-]{32}", "nytimes", "york"),
    _named("okta-token", "okta", "00[\\w=-]{40}"),
    _named("plaid-secret", "plaid", "[a-z0-9]{30}|[a-z0-9]{24}"),
    _named("privateai-token", "private_?ai", f"{_HEX}{{32}}", "privateai", "private_ai"),
    _named("rapidapi-key", "rapid_?api|x-rapidapi-key", f"{_ALNUM}{{50}}", "rapidapi", "rapid_api"),
    _named("sendbird-token", "sendbird", f"{_HEX}{{40}}|{_UUID}"),
    _named("sentry-legacy-token", "sentry", f"{_HEX}{{64}}"),
    _named("sidekiq-key", "bundle_(?:enterprise|gems)__contribsys__com", f"{_HEX}{{8}}:{_HEX}{{8}}", "contribsys"),
    _named("snyk-token", "snyk", _UUID),
    _named("sourcegraph-legacy-token", "sourcegraph", f"{_HEX}{{40}}"),
    _named("squarespace-token", "squarespace", _UUID),
    _named("sumologic-token", "sumo(?:_?logic|_)", f"su{_ALNUM}{{12}}|{_ALNUM}{{64}}", "sumo"),
    _named("travis-token", "travis", f"{_ALNUM}{{22}}"),
    _named("twilio-auth-token", "twilio", f"{_HEX}{{32}}"),
    _named("twitch-token", "twitch", "[a-z0-9]{30}"),
    _named("twitter-secret", "twitter", f"{_ALNUM}{{50}}|{_ALNUM}{{45}}|{_ALNUM}{{35,44}}|{_ALNUM}{{25}}"),
    _named("wandb-key", "wandb|weights_?and_?biases", f"{_HEX}{{40}}", "wandb", "weights"),
    _named("yandex-aws-key", "yandex", "YC[\\w-]{38}"),
    _named("zendesk-secret", "zendesk", f"{_ALNUM}{{40}}"),
    _named("meraki-key", "meraki", "[0-9a-f]{40}"),
    _named("deepseek-key", "deepseek", f"sk-{_HEX}{{32}}"),
)  # fmt: skip

_NAME_BEFORE = r"(?:api|auth|access|client|app|private|master|signing|encryption|service|bearer|refresh|session|user|db|admin|root)?[_.\s-]?"
_IN_PLACES = (
    TokenFormat(
        "authorization-header",
        r"(?i:authorization)[\"']?\s?[:=]\s{0,4}[\"']?(?:(?i:basic|bearer|token|api-?token|apikey|key|digest)\s{1,4})?([\w~@.+/=:-]{10,})",
        ("authorization",), 2.7, is_named=True,
    ),
    TokenFormat(
        "key-header",
        r"(?i:(?:-H|--header)[ =]{0,3}[\"']?(?:x-)?(?:[\w-]{0,20}-)?(?:api-?key|api-?token|auth-?token|access-?token|token|secret)\s?:\s{0,3})([\w~@.+/=-]{8,500})",
        ("key", "token", "secret"), 2.7, is_named=True,
    ),
    TokenFormat(
        "curl-user",
        r"\bcurl\b[^\n]{0,400}?(?:\\\n[^\n]{0,200}?){0,5}\s(?:-u|--user)[ =]{0,3}[\"']?([^\s\"'$<{(:]{0,100}[\"']?:[\"'{]{0,2}[^\s\"'$<{(]{6,200})",
        ("curl",), 2.5, is_named=True,
    ),
    TokenFormat(
        "curl-user-key",
        r"\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[ =]{0,3}[\"']?([^\s\"'$<{(:]{8,100}):[\"'\s]",
        ("curl",), 2.5, is_named=True,
    ),
    TokenFormat(
        "url-password",
        r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s:/@\"'<>${}]{0,100}:([^\s:/@\"'<>${}*]{6,200})@[\w.-]{2,}",
        ("://",), 2.0, is_named=True,
    ),
    TokenFormat(
        "assigned-secret",
        rf"(?i:\b[\w.-]{{0,40}}?{_NAME_BEFORE}(?:api_?-?key|secret_?-?key|secret|token|passwd|password|passphrase|credential)s?)[\"'\]]{{0,2}}"
        r"\s{0,5}(?:=>|:=|=|:)\s{0,5}[\"'`]([\w~!@#%^&*.+/=-]{12,150})[\"'`]",
        ("key", "secret", "token", "passw", "passphrase", "credential"), 3.7, is_named=True,
    ),
)  # fmt: skip

FORMATS: tuple[TokenFormat, ...] = (*_BY_PREFIX, *_BY_SHAPE, *_BY_NAME, *_IN_PLACES)
"""All formats; where two find the same text, the one that stands first names it."""
