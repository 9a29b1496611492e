"""Which model an agent uses and how: every way to say it ends in one ``Agent.llm_config``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents import providers
from agents.wire.llm import config_of_settings, embedding_config_of, llm_config_state
from lettaweb.lib.problems import Problem

Given = Mapping[str, Any]
Config = dict[str, Any]

ANSWER_TOKENS = 16_384  # the longest answer asked for where the agent does not say


@dataclass(frozen=True, slots=True)
class Model:
    """An agent's model: the columns model, llm_config, model_settings and response_format of its row."""

    model: str
    llm_config: Config
    model_settings: Config
    response_format: Any = None

    @property
    def columns(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "llm_config": self.llm_config,
            "model_settings": self.model_settings,
            "response_format": self.response_format,
        }


def chosen_model(given: Given) -> Model:
    """The model of a new agent. Raises a :class:`Problem` 400 or 404 where there is none."""
    if given.get("llm_config"):
        base = from_config(given["llm_config"])
    elif given.get("model"):
        base = from_handle(given["model"])
    else:
        raise Problem(400, "INVALID_ARGUMENT: Must specify either model or llm_config in request")
    return _settled(base, given, sent={})


def changed_model(old: Model, given: Given) -> Model:
    """``old`` with what ``given`` says of model, llm_config, model_settings and their parts."""
    config = old.llm_config if "handle" in old.llm_config else {**from_handle(old.model), **old.llm_config}
    if given.get("llm_config"):
        config = from_config(given["llm_config"])
    if given.get("model") and given["model"] != old.model:
        fresh = from_handle(given["model"])
        kept = {name: value for name, value in config.items() if name in _OF_THE_AGENT}
        config = {**fresh, **kept}
    return _settled(config, given, sent=old.model_settings)


def from_handle(handle: str) -> Config:
    """The llm_config of ``provider/name``. Raises a :class:`Problem` 400 (malformed) or 404 (unknown provider)."""
    provider, slash, name = handle.partition("/")
    if not slash or not provider or not name.strip():
        raise Problem(400, "INVALID_ARGUMENT: The model handle should be in the format provider/model-name")
    try:
        info = providers.model_info(handle)
    except providers.UnknownProvider:
        handles = ", ".join(f"'{model.handle}'" for model in providers.known_models())
        raise Problem(404, f"NOT_FOUND: Handle {handle} not found, must be one of [{handles}]") from None
    return {
        "model": name,
        "model_endpoint_type": provider,
        "provider_name": provider,
        "provider_category": "base",
        "handle": handle,
        "context_window": info.context_window,
        "max_tokens": min(info.max_output, ANSWER_TOKENS),
        "parallel_tool_calls": False,
    }


def from_config(config: Given) -> Config:
    """A sent llm_config, completed. Unknown keys are kept, nulls are not; a new ``model`` gives a new handle.

    A value that only repeats the default that the wire shows counts as never set, so that an llm_config
    that comes back as it was shown changes nothing.
    """
    sent = {name: value for name, value in config.items() if value is not None}
    provider = str(sent.get("provider_name") or sent.get("model_endpoint_type") or "")
    handle = str(sent.get("handle") or "")
    if handle.partition("/")[2] != sent["model"]:
        handle = f"{handle.partition('/')[0] or provider}/{sent['model']}"
    fresh = from_handle(handle)
    shown = llm_config_state(fresh)
    chosen = {name: value for name, value in sent.items() if name in fresh or shown.get(name) != value}
    return {**fresh, **chosen, "handle": handle}


def embedding_columns(given: Given) -> dict[str, Any]:
    """The columns embedding and embedding_config that ``given`` asks for; never checked, nothing is embedded."""
    config = given.get("embedding_config")
    if config:
        return {"embedding": config.get("handle") or given.get("embedding"), "embedding_config": dict(config)}
    if given.get("embedding"):
        handle = given["embedding"]
        return {"embedding": handle, "embedding_config": embedding_config_of(handle, given.get("embedding_chunk_size"))}
    return {}


_OF_THE_AGENT = frozenset(
    {"parallel_tool_calls", "response_format", "temperature", "enable_reasoner", "put_inner_thoughts_in_kwargs"}
)
"""What an agent keeps when it changes its model."""

_TOP_LEVEL = {
    "context_window_limit": "context_window",
    "max_tokens": "max_tokens",
    "max_reasoning_tokens": "max_reasoning_tokens",
    "enable_reasoner": "enable_reasoner",
    "reasoning": "enable_reasoner",
    "parallel_tool_calls": "parallel_tool_calls",
    "response_format": "response_format",
}


def _settled(config: Config, given: Given, *, sent: Given) -> Model:
    """``config`` with model_settings and the top-level fields laid over it."""
    shown = llm_config_state(config)
    settings = {name: value for name, value in (given.get("model_settings") or {}).items() if value is not None}
    said = config_of_settings(settings)
    said |= {to: given[name] for name, to in _TOP_LEVEL.items() if given.get(name) is not None}
    for name, value in said.items():
        if name in config or shown.get(name) != value:
            config = {**config, name: value}
    return Model(str(config["handle"]), config, _unknown(sent, settings), config.get("response_format"))


def _unknown(sent: Given, settings: Given) -> Config:
    """What the client's model_settings hold beyond what llm_config says."""
    said = {**sent, **settings}
    known = {"provider_type", "max_output_tokens", "temperature", "parallel_tool_calls", "response_format", "strict"}
    known |= {"thinking", "reasoning", "verbosity", "effort", "tool_call_parser"}
    return {name: value for name, value in said.items() if name not in known}
