"""What the Messages API refuses outside of ``messages``: fields, model, thinking, tools, system, size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.scripted.anthropic_messages import check_messages, check_text
from tests.scripted.checks import NAME, schema_fault
from tests.scripted.models import AnthropicModel, anthropic_model
from tests.scripted.refusals import Refused, expect, refuse

Json = Any

COUNTED = {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed"}
FIELDS = COUNTED | {
    "max_tokens", "metadata", "stop_sequences", "stream", "service_tier", "container",
    "inference_geo", "diagnostics", "user_profile_id", "workspace_id",
}  # fmt: skip
BETA_FIELDS = {"context_management", "mcp_servers"}
TOOL_FIELDS = {
    "name", "description", "input_schema", "cache_control", "type", "strict", "input_examples", "allowed_callers",
    "defer_loading", "eager_input_streaming",
}  # fmt: skip
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
SAMPLING = ("temperature", "top_p", "top_k")


@dataclass(frozen=True, slots=True)
class Rules:
    """How strict to be. ``sampling``: API versions before 2026-10-21 still take temperature, top_p and top_k."""

    alternate: bool = True
    sampling: bool = False
    beta: bool = False


def check_request(body: Json, rules: Rules, *, counting: bool = False) -> None:
    """Refuse what the Messages API refuses. ``counting``: the fields of count_tokens. Raises Refused."""
    expect(isinstance(body, dict), "Input should be a valid dictionary")
    allowed = COUNTED if counting else FIELDS
    allowed = allowed | (BETA_FIELDS if rules.beta else set()) | (set(SAMPLING) if rules.sampling else set())
    for name in body:
        expect(name in allowed, f"{name}: Extra inputs are not permitted")
    model = check_model(body)
    if not counting:
        check_max_tokens(body, model)
    check_thinking(body, model, beta=rules.beta)
    check_sampling(body, model)
    check_system(body)
    check_tools(body)
    check_choice(body)
    check_messages(body, model, alternate=rules.alternate)
    check_cache_marks(body)
    check_window(body, model)


def check_model(body: Mapping[str, Json]) -> AnthropicModel:
    expect("model" in body, "model: Field required")
    expect(isinstance(body["model"], str), "model: Input should be a valid string")
    expect(body["model"], "model: String should have at least 1 character")
    model = anthropic_model(body["model"])
    if model is None:
        raise Refused(f"model: {body['model']}", status=404, kind="not_found_error")
    return model


def check_max_tokens(body: Mapping[str, Json], model: AnthropicModel) -> None:
    expect("max_tokens" in body, "max_tokens: Field required")
    value = body["max_tokens"]
    expect(type(value) is int, "max_tokens: Input should be a valid integer")
    expect(value >= 1, "max_tokens: Input should be greater than or equal to 1")
    limit = model.max_output
    expect(
        value <= limit,
        f"max_tokens: {value} > {limit}, which is the maximum allowed number of output tokens for {model.id}",
    )
    for sequence in body.get("stop_sequences") or []:
        expect(isinstance(sequence, str), "stop_sequences: Input should be a valid string")
        expect(sequence.strip(), "stop_sequences: each stop sequence must contain non-whitespace")


# --- thinking and sampling ------------------------------------------------------------------------


def check_thinking(body: Mapping[str, Json], model: AnthropicModel, *, beta: bool) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    expect(isinstance(thinking, dict), "thinking: Input should be a valid dictionary")
    kind = thinking.get("type")
    known = kind in ("enabled", "adaptive", "disabled", "between_tools")
    expect(known, f"thinking: Input tag {kind!r} found using 'type' does not match any of the expected tags")
    fields = {"enabled": {"type", "budget_tokens", "display"}, "adaptive": {"type", "display"}}.get(kind, {"type"})
    for name in thinking:
        bound = name == "block_binding" and beta and kind in ("enabled", "adaptive")
        expect(bound or name in fields, f"thinking.{kind}.{name}: Extra inputs are not permitted")
    if kind == "enabled":
        check_budget(body, thinking, model)
    if kind == "adaptive":
        expect(model.reasoning == "adaptive", "adaptive thinking is not supported on this model")
    forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
    if kind in ("enabled", "adaptive"):
        expect(not forced, "Thinking may not be enabled when tool_choice forces tool use.")


def check_budget(body: Mapping[str, Json], thinking: Mapping[str, Json], model: AnthropicModel) -> None:
    expect("budget_tokens" in thinking, "thinking.enabled.budget_tokens: Field required")
    budget = thinking["budget_tokens"]
    expect(type(budget) is int, "thinking.enabled.budget_tokens: Input should be a valid integer")
    expect(budget >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    expect(model.reasoning != "none", f"'{model.id}' does not support thinking.")
    expect(
        model.reasoning == "budget",
        '"thinking.type.enabled" is not supported for this model. '
        'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    )
    limit = body.get("max_tokens", budget + 1)
    expect(limit > budget, "`max_tokens` must be greater than `thinking.budget_tokens`.")


def check_sampling(body: Mapping[str, Json], model: AnthropicModel) -> None:
    for name in SAMPLING:
        value = body.get(name)
        if value is None:
            continue
        expect(isinstance(value, int | float), f"{name}: Input should be a valid number")
        expect(model.reasoning != "adaptive", f"`{name}` is not supported on this model.")
        expect(name == "top_k" or 0 <= value <= 1, f"{name}: range: 0..1")
    if (body.get("thinking") or {}).get("type") not in ("enabled", "adaptive"):
        return
    expect(
        body.get("temperature") in (None, 1),
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
    )
    expect(body.get("top_k") is None, "`top_k` must be unset when thinking is enabled or in adaptive mode.")
    top_p = body.get("top_p")
    expect(
        top_p is None or top_p >= 0.95,
        "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.",
    )


# --- system and tools -----------------------------------------------------------------------------


def check_system(body: Mapping[str, Json]) -> None:
    system = body.get("system")
    if system is None or isinstance(system, str):
        return
    expect(isinstance(system, list), "system: Input should be a valid list")
    for place, block in enumerate(system):
        expect(isinstance(block, dict), f"system.{place}: Input should be a valid dictionary")
        expect(block.get("type") == "text", f"system.{place}.type: Input should be 'text'")
        check_text(block, f"system.{place}", "system")


def check_tools(body: Mapping[str, Json]) -> None:
    tools = body.get("tools", [])
    expect(isinstance(tools, list), "tools: Input should be a valid list")
    for place, tool in enumerate(tools):
        expect(isinstance(tool, dict), f"tools.{place}: Input should be a valid dictionary")
        check_tool(tool, f"tools.{place}.custom")
    counts = Counter(tool["name"] for tool in tools)
    expect(all(count == 1 for count in counts.values()), "tools: Tool names must be unique.")


def check_tool(tool: Mapping[str, Json], where: str) -> None:
    for name in tool:
        expect(name in TOOL_FIELDS, f"{where}.{name}: Extra inputs are not permitted")
    expect(tool.get("type") in (None, "custom"), f"{where}.type: Input should be 'custom'")
    expect("name" in tool, f"{where}.name: Field required")
    valid = isinstance(tool["name"], str) and NAME.fullmatch(tool["name"])
    expect(valid, f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    description = tool.get("description", "")
    expect(isinstance(description, str), f"{where}.description: Input should be a valid string")
    check_input_schema(tool, where)


def check_input_schema(tool: Mapping[str, Json], where: str) -> None:
    expect("input_schema" in tool, f"{where}.input_schema: Field required")
    schema = tool["input_schema"]
    where = f"{where}.input_schema"
    expect(isinstance(schema, dict), f"{where}: Input should be a valid dictionary")
    expect("type" in schema, f"{where}.type: Field required")
    expect(schema["type"] == "object", f"{where}.type: Input should be 'object'")
    for name in ("oneOf", "allOf", "anyOf"):
        expect(name not in schema, f"{where}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    fault = schema_fault(schema)
    expect(not fault, f"{where}: JSON schema is invalid. It must match JSON Schema draft 2020-12. {fault}")
    for name in schema.get("properties") or {}:
        valid = PROPERTY.fullmatch(name)
        expect(valid, f"{where}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'")


def check_choice(body: Mapping[str, Json]) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    expect(isinstance(choice, dict), "tool_choice: Input should be a valid dictionary")
    expect(body.get("tools"), "tool_choice: may only be specified while providing tools")
    kind = choice.get("type")
    known = kind in ("auto", "any", "tool", "none")
    expect(known, f"tool_choice: Input tag {kind!r} found using 'type' does not match any of the expected tags")
    fields = (
        {"type"}
        | ({"disable_parallel_tool_use"} if kind != "none" else set())
        | ({"name"} if kind == "tool" else set())
    )
    for name in choice:
        expect(name in fields, f"tool_choice.{kind}.{name}: Extra inputs are not permitted")
    if kind == "tool":
        names = {tool["name"] for tool in body["tools"]}
        expect(choice.get("name") in names, f"Tool '{choice.get('name')}' not found in provided tools")


# --- the whole ------------------------------------------------------------------------------------


def check_cache_marks(body: Mapping[str, Json]) -> None:
    count = _marks(body.get("system")) + _marks(body.get("tools"))
    count += sum(_marks(message["content"]) for message in body["messages"])
    expect(count <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {count}.")


def _marks(blocks: Json) -> int:
    if not isinstance(blocks, list):
        return 0
    return sum(1 for block in blocks if block.get("cache_control"))


def check_window(body: Mapping[str, Json], model: AnthropicModel) -> None:
    size = estimated_tokens(body)
    if size > model.window:
        refuse(f"prompt is too long: {size} tokens > {model.window} maximum")


def estimated_tokens(body: Mapping[str, Json]) -> int:
    """About a token for four characters of text; an image counts 1,500. At least 1."""
    return max(1, sum(map(_size, (body.get("system"), body.get("tools"), body.get("messages")))) // 4)


def _size(value: Json) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        if value.get("type") == "image":
            return 6000
        return sum(len(str(key)) + _size(item) for key, item in value.items())
    return sum(map(_size, value)) if isinstance(value, list) else 4
