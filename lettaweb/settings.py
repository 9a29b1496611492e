"""Every setting, read once from the environment. Nothing else reads ``LETTAWEB_`` variables for the server."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import environ

from lettaweb.lib.environment import LOOPBACK_NAMES, data_dir, is_loopback, secret_key
from lettaweb.logging import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

# --- the server -----------------------------------------------------------------------------------

DEBUG: bool = env.bool("LETTAWEB_DEBUG", default=False)
LETTAWEB_DATA_DIR = data_dir(env.str("LETTAWEB_DATA_DIR", default=str(BASE_DIR / "var")))
LETTAWEB_HOST: str = env.str("LETTAWEB_HOST", default="127.0.0.1")
LETTAWEB_PORT: int = env.int("LETTAWEB_PORT", default=8283)
LETTAWEB_LOOPBACK = is_loopback(LETTAWEB_HOST)
# open: the API takes any or no Authorization header, for loopback Host names only. token: bearer tokens.
LETTAWEB_AUTH: str = env.str("LETTAWEB_AUTH", default="open" if LETTAWEB_LOOPBACK else "token")
LETTAWEB_OPEN_HOSTS = list(LOOPBACK_NAMES)
LETTAWEB_ADMIN_PASSWORD: str = env.str("LETTAWEB_ADMIN_PASSWORD", default="")
LETTAWEB_CORS_ORIGINS: list[str] = env.list("LETTAWEB_CORS_ORIGINS", default=[])
LETTAWEB_ORIGINS: list[str] = env.list("LETTAWEB_ORIGINS", default=[])  # further names of our own pages
LETTAWEB_HTTPS: bool = env.bool("LETTAWEB_HTTPS", default=False)
LETTAWEB_MAX_BODY_MB: int = env.int("LETTAWEB_MAX_BODY_MB", default=64)
LETTAWEB_MAX_BODY = LETTAWEB_MAX_BODY_MB * 1024 * 1024
LETTAWEB_DRAIN_SECONDS: float = env.float("LETTAWEB_DRAIN_SECONDS", default=10)
LETTAWEB_THREADS: int = env.int("LETTAWEB_THREADS", default=20)  # that answer requests other than streams
LETTAWEB_THROTTLE: int = env.int("LETTAWEB_THROTTLE", default=0)  # requests a minute and caller; 0: no limit
LETTAWEB_VERSION = "0.16.7"  # of the wire: what the SDKs expect of a server

SECRET_KEY = env.str("LETTAWEB_SECRET_KEY", default="") or secret_key(LETTAWEB_DATA_DIR)
ALLOWED_HOSTS: list[str] = env.list(
    "LETTAWEB_ALLOWED_HOSTS", default=list(LOOPBACK_NAMES) if LETTAWEB_LOOPBACK else ["*"]
)

# --- runs, events, sandbox, providers: read by the apps -------------------------------------------

LETTAWEB_LEASE_SECONDS: float = env.float("LETTAWEB_LEASE_SECONDS", default=15)
LETTAWEB_RUN_SECONDS: float = env.float("LETTAWEB_RUN_SECONDS", default=14_400)  # then a run ends as failed
LETTAWEB_PING_SECONDS: float = env.float("LETTAWEB_PING_SECONDS", default=25.0)
LETTAWEB_READER_SECONDS: float = env.float("LETTAWEB_READER_SECONDS", default=30.0)  # then one that stalls is cut
LETTAWEB_MAX_RUNS: int = env.int("LETTAWEB_MAX_RUNS", default=500)
LETTAWEB_TOOL_SLOTS: int = env.int("LETTAWEB_TOOL_SLOTS", default=max(4, 2 * (os.cpu_count() or 2)))
LETTAWEB_EVENTS_KEEP_DAYS: int = env.int("LETTAWEB_EVENTS_KEEP_DAYS", default=30)
LETTAWEB_BATCH_POLL_SECONDS: float = env.float("LETTAWEB_BATCH_POLL_SECONDS", default=30)
LETTAWEB_PRICES: dict[str, Any] = env.json("LETTAWEB_PRICES", default={})
LETTAWEB_WEBHOOK_URL: str = env.str("LETTAWEB_WEBHOOK_URL", default="")  # told of what begins to wait for people
LETTAWEB_WEBHOOK_SECRET: str = env.str("LETTAWEB_WEBHOOK_SECRET", default="")  # "": follows from SECRET_KEY
LETTAWEB_WEBHOOK_PRIVATE: bool = env.bool("LETTAWEB_WEBHOOK_PRIVATE", default=False)  # may go to private addresses
LETTAWEB_DEMO_DELAY_MS: int = env.int("LETTAWEB_DEMO_DELAY_MS", default=15)

LETTAWEB_PROVIDER_TIMEOUT: float = env.float("LETTAWEB_PROVIDER_TIMEOUT", default=600)
LETTAWEB_PROVIDER_RETRIES: int = env.int("LETTAWEB_PROVIDER_RETRIES", default=2)
LETTAWEB_PROVIDER_BACKOFF: float = env.float("LETTAWEB_PROVIDER_BACKOFF", default=0.5)
ANTHROPIC_API_KEY: str = env.str("ANTHROPIC_API_KEY", default="")
ANTHROPIC_BASE_URL: str = env.str("ANTHROPIC_BASE_URL", default="")
OPENAI_API_KEY: str = env.str("OPENAI_API_KEY", default="")
OPENAI_BASE_URL: str = env.str("OPENAI_BASE_URL", default="")

LETTAWEB_SANDBOX_MIN_TIER: int = env.int("LETTAWEB_SANDBOX_MIN_TIER", default=2)
LETTAWEB_SANDBOX_UNSAFE: bool = env.bool("LETTAWEB_SANDBOX_UNSAFE", default=False)
LETTAWEB_SANDBOX_PIP: str = env.str("LETTAWEB_SANDBOX_PIP", default="deny")
LETTAWEB_SANDBOX_PIP_ALLOW: list[str] = env.list("LETTAWEB_SANDBOX_PIP_ALLOW", default=[])
LETTAWEB_SANDBOX_PRELOAD: list[str] = env.list("LETTAWEB_SANDBOX_PRELOAD", default=[])
LETTAWEB_SANDBOX_SUBPROCESS: bool = env.bool("LETTAWEB_SANDBOX_SUBPROCESS", default=False)
LETTAWEB_SANDBOX_FORCE_TIER: str = env.str("LETTAWEB_SANDBOX_FORCE_TIER", default="")

# --- applications ---------------------------------------------------------------------------------

INSTALLED_APPS = [
    "daphne",
    "lettaweb",
    "agents",  # before channels: both have a command runworker
    "channels",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "knox",
    "axes",
    "corsheaders",
    "django_filters",
    "django_htmx",
    "django_q",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "tools",
    "batches",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "lettaweb.middleware.content_security_policy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "lettaweb.middleware.plain_paths",
    "lettaweb.middleware.Common",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "lettaweb.urls"
ASGI_APPLICATION = "lettaweb.asgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "lettaweb.middleware.csp_nonce",
            ]
        },
    }
]
LANGUAGE_CODE = "en-us"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
STATIC_ROOT: str | None = env.str("LETTAWEB_STATIC_ROOT", default="") or None  # for collectstatic only
STATICFILES_DIRS = [BASE_DIR / "lettaweb" / "static"]
WHITENOISE_USE_FINDERS = True  # no collectstatic step between a checkout and a running server
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MAX_AGE = 0 if DEBUG else 300

# --- database, queue, channels --------------------------------------------------------------------

SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 5,  # seconds; below the lease, so that a waiting writer fails before its run is taken over
    "init_command": (
        "PRAGMA journal_mode=WAL;"
        f"PRAGMA synchronous={env.str('LETTAWEB_SQLITE_SYNCHRONOUS', default='NORMAL')};"
        "PRAGMA journal_size_limit=67108864;PRAGMA temp_store=MEMORY"
    ),
}
# The queue's cluster forks its workers: a pool's threads and sockets must not be copied into them.
LETTAWEB_FORKS = "qcluster" in sys.argv[1:2] or "cluster" in sys.argv[1:2]
LETTAWEB_DB_POOL: int = env.int("LETTAWEB_DB_POOL", default=10)
LETTAWEB_DB_THREADS: int = env.int("LETTAWEB_DB_THREADS", default=4)  # of the executor


def _database() -> dict[str, Any]:
    database: dict[str, Any] = env.db_url("DATABASE_URL", default=f"sqlite:///{LETTAWEB_DATA_DIR / 'lettaweb.sqlite3'}")
    # A few threads answer requests and keep their connections; with a pool they borrow them.
    database.update(CONN_MAX_AGE=None, CONN_HEALTH_CHECKS=True, ATOMIC_REQUESTS=False)
    if database["ENGINE"] == "django.db.backends.sqlite3":
        database["ENGINE"] = "lettaweb.lib.sqlite"
        database["OPTIONS"] = {**SQLITE_OPTIONS, **database.get("OPTIONS", {})}
        # A file, not memory: tests use several connections. tests/conftest.py gives each run its own.
        database["TEST"] = {"NAME": str(Path(database["NAME"]).with_name("test.sqlite3"))}
        return database
    options = database.setdefault("OPTIONS", {})
    # Who stands still inside a transaction (stopped, cut off) is held for dead after this time, and its locks with it.
    limit = f"-c idle_in_transaction_session_timeout={int(LETTAWEB_LEASE_SECONDS * 1000)}"
    options["options"] = f"{limit} {options.get('options', '')}".strip()
    if LETTAWEB_DB_POOL and not LETTAWEB_FORKS:
        pool = {"min_size": 1, "max_size": LETTAWEB_DB_POOL, "timeout": 10, "max_idle": 60}
        database.update(CONN_MAX_AGE=0, OPTIONS={"pool": pool, **options})
    return database


DATABASES = {"default": _database()}

REDIS_URL: str = env.str("REDIS_URL", default="")
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
if REDIS_URL:
    redis = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
    CHANNEL_LAYERS = {"default": redis}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

LETTAWEB_QUEUE_BEAT_SECONDS: float = env.float("LETTAWEB_QUEUE_BEAT_SECONDS", default=20)  # between two questions
LETTAWEB_QUEUE_DEAD_SECONDS: float = env.float("LETTAWEB_QUEUE_DEAD_SECONDS", default=90)  # without an answer
Q_CLUSTER = {
    "name": "lettaweb",
    "orm": "default",
    "workers": env.int("LETTAWEB_QUEUE_WORKERS", default=2),
    "timeout": 60,  # a tick works at most 45 s
    "retry": 120,
    "max_attempts": 1,
    "ack_failures": True,
    "poll": 1,
    "queue_limit": 8,
    "bulk": 1,
    "recycle": 500,
    "save_limit": 100,
    "catch_up": False,
    "label": "Queue",
    "log_level": "WARNING",
}

# --- who may come in ------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "locked.html"
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
REST_KNOX = {"AUTH_HEADER_PREFIX": "Bearer", "TOKEN_TTL": None, "TOKEN_PREFIX": "lw_", "AUTO_REFRESH": False}

LETTAWEB_SECURE_COOKIES: bool = env.bool("LETTAWEB_SECURE_COOKIES", default=LETTAWEB_HTTPS or not LETTAWEB_LOOPBACK)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LETTAWEB_SECURE_COOKIES
SESSION_COOKIE_NAME = "lettaweb_session"
CSRF_COOKIE_NAME = "lettaweb_csrf"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = LETTAWEB_ORIGINS
CSRF_FAILURE_VIEW = "lettaweb.errors.csrf_failure"
if LETTAWEB_HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = LETTAWEB_MAX_BODY
FILE_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
CORS_ALLOWED_ORIGINS = LETTAWEB_CORS_ORIGINS
CORS_ALLOW_CREDENTIALS = True
CORS_URLS_REGEX = r"^/(v1|api)/"
CORS_ALLOW_HEADERS = ["*"] if "*" in LETTAWEB_CORS_ORIGINS else [
    "accept", "authorization", "content-type", "last-event-id", "user-agent", "user_id", "x-bare-password",
    "x-project", "x-project-id", "x-stainless-arch", "x-stainless-lang", "x-stainless-os",
    "x-stainless-package-version", "x-stainless-retry-count", "x-stainless-runtime",
    "x-stainless-runtime-version", "x-stainless-timeout",
]  # fmt: skip

# --- API ------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["lettaweb.rest.GuardAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["lettaweb.rest.HasRight"],
    "DEFAULT_PARSER_CLASSES": ["lettaweb.rest.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["lettaweb.rest.WireJSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "lettaweb.rest.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "lettaweb.openapi.WireSchema",
    "DEFAULT_VERSIONING_CLASS": None,
    "EXCEPTION_HANDLER": "lettaweb.errors.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "TEST_REQUEST_RENDERER_CLASSES": [
        "rest_framework.renderers.JSONRenderer",
        "rest_framework.renderers.MultiPartRenderer",
    ],
}
SPECTACULAR_SETTINGS = {
    "TITLE": "lettaweb",
    "DESCRIPTION": "Stateful agents whose tool calls people approve: the Letta V1 REST API and more.",
    "VERSION": LETTAWEB_VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "PREPROCESSING_HOOKS": ["lettaweb.openapi.only_v1"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "lettaweb.openapi.with_raw_routes",
    ],
    "DISABLE_ERRORS_AND_WARNINGS": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# --- log ------------------------------------------------------------------------------------------

LETTAWEB_LOG_LEVEL: str = env.str("LETTAWEB_LOG_LEVEL", default="INFO").upper()
LETTAWEB_LOG_FORMAT: str = env.str("LETTAWEB_LOG_FORMAT", default="console" if sys.stderr.isatty() else "json")
LETTAWEB_ACCESS_LOG: bool = env.bool("LETTAWEB_ACCESS_LOG", default=False)
LOGGING = logging_config(level=LETTAWEB_LOG_LEVEL, form=LETTAWEB_LOG_FORMAT)
SILENCED_SYSTEM_CHECKS: list[str] = []
