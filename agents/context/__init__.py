"""From stored history to a request that the strictest vendor takes. Pure: no queries, no clock, no vendor."""

from agents.context.chat import chat_messages
from agents.context.clip import clip_results
from agents.context.compaction import (
    CompactionSettings,
    compaction_settings,
    foldable,
    needs_compaction,
    plan_cut,
)
from agents.context.history import HistoryMessage, history_message, split_prompt
from agents.context.summary import summary_request, summary_text
from agents.context.tokens import estimate_tokens

__all__ = [
    "CompactionSettings",
    "HistoryMessage",
    "chat_messages",
    "clip_results",
    "compaction_settings",
    "estimate_tokens",
    "foldable",
    "history_message",
    "needs_compaction",
    "plan_cut",
    "split_prompt",
    "summary_request",
    "summary_text",
]
