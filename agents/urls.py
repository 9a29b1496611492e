"""Paths of the agents' API, below /v1/; each with and without the trailing slash."""

from __future__ import annotations

from django.urls import re_path

from agents.views import agent_files, agent_tools, agents, blocks, conversations, messages, models, runs, steps, tags

AGENT = r"^agents/(?P<agent_id>[^/]+)"

urlpatterns = [
    # agents
    re_path(r"^agents/?$", agents.Agents.as_view()),
    re_path(r"^agents/count/?$", agents.AgentCount.as_view()),
    re_path(r"^agents/import/?$", agent_files.ImportAgents.as_view()),
    re_path(rf"{AGENT}/?$", agents.AgentDetail.as_view()),
    re_path(rf"{AGENT}/export/?$", agent_files.ExportAgent.as_view()),
    re_path(rf"{AGENT}/context/?$", agents.AgentContext.as_view()),
    re_path(rf"{AGENT}/recompile/?$", agents.AgentRecompile.as_view()),
    re_path(rf"{AGENT}/system-prompt/recompile/?$", agents.AgentRecompile.as_view()),
    re_path(rf"{AGENT}/reset-messages/?$", agents.AgentReset.as_view()),
    # their tools
    re_path(rf"{AGENT}/tools/?$", agent_tools.AgentTools.as_view()),
    re_path(rf"{AGENT}/tools/attach/(?P<tool_id>[^/]+)/?$", agent_tools.AttachTool.as_view()),
    re_path(rf"{AGENT}/tools/detach/(?P<tool_id>[^/]+)/?$", agent_tools.DetachTool.as_view()),
    re_path(rf"{AGENT}/tools/approval/(?P<tool_name>[^/]+)/?$", agent_tools.ToolApproval.as_view()),
    re_path(rf"{AGENT}/tools/(?P<tool_name>[^/]+)/run/?$", agent_tools.RunAgentTool.as_view()),
    # memory; the label of a block may hold slashes, so it comes last
    re_path(rf"{AGENT}/core-memory/?$", blocks.CoreMemory.as_view()),
    re_path(rf"{AGENT}/core-memory/blocks/?$", blocks.CoreBlocks.as_view()),
    re_path(rf"{AGENT}/core-memory/blocks/attach/(?P<block_id>[^/]+)/?$", blocks.AttachBlock.as_view()),
    re_path(rf"{AGENT}/core-memory/blocks/detach/(?P<block_id>[^/]+)/?$", blocks.DetachBlock.as_view()),
    re_path(rf"{AGENT}/core-memory/blocks/(?P<block_label>.+?)/?$", blocks.CoreBlock.as_view()),
    re_path(r"^blocks/?$", blocks.Blocks.as_view()),
    re_path(r"^blocks/count/?$", blocks.BlockCount.as_view()),
    re_path(r"^blocks/(?P<block_id>[^/]+)/?$", blocks.BlockDetail.as_view()),
    re_path(r"^blocks/(?P<block_id>[^/]+)/agents/?$", blocks.BlockAgents.as_view()),
    re_path(r"^tags/?$", tags.Tags.as_view()),
    # what was said
    re_path(r"^agents/messages/search/?$", messages.SearchAgentMessages.as_view()),
    re_path(r"^agents/(?P<agent_id>[^/]+)/messages/?$", messages.AgentMessages.as_view()),
    re_path(r"^agents/(?P<agent_id>[^/]+)/messages/cancel/?$", conversations.AgentCancel.as_view()),
    re_path(r"^agents/(?P<agent_id>[^/]+)/messages/(?P<message_id>message-[^/]+)/?$", messages.MessageEdit.as_view()),
    re_path(r"^agents/(?P<agent_id>[^/]+)/summarize/?$", conversations.AgentSummarize.as_view()),
    re_path(r"^messages/?$", messages.Messages.as_view()),
    re_path(r"^messages/search/?$", messages.SearchMessages.as_view()),
    re_path(r"^messages/(?!batches/?$)(?P<message_id>[^/]+)/?$", messages.MessageDetail.as_view()),
    # conversations
    re_path(r"^conversations/?$", conversations.Conversations.as_view()),
    re_path(r"^conversations/(?P<conversation_id>[^/]+)/?$", conversations.ConversationDetail.as_view()),
    re_path(r"^conversations/(?P<conversation_id>[^/]+)/messages/?$", conversations.ConversationMessages.as_view()),
    re_path(r"^conversations/(?P<conversation_id>[^/]+)/cancel/?$", conversations.ConversationCancel.as_view()),
    re_path(r"^conversations/(?P<conversation_id>[^/]+)/fork/?$", conversations.ConversationFork.as_view()),
    re_path(r"^conversations/(?P<conversation_id>[^/]+)/compact/?$", conversations.ConversationCompact.as_view()),
    re_path(r"^conversations/(?P<conversation_id>[^/]+)/recompile/?$", conversations.ConversationRecompile.as_view()),
    # runs and steps
    re_path(r"^runs/?$", runs.Runs.as_view()),
    re_path(r"^runs/active/?$", runs.ActiveRuns.as_view()),
    re_path(r"^runs/(?P<run_id>[^/]+)/?$", runs.RunDetail.as_view()),
    re_path(r"^runs/(?P<run_id>[^/]+)/cancel/?$", runs.RunCancel.as_view()),
    re_path(r"^runs/(?P<run_id>[^/]+)/messages/?$", runs.RunMessages.as_view()),
    re_path(r"^runs/(?P<run_id>[^/]+)/steps/?$", runs.RunSteps.as_view()),
    re_path(r"^runs/(?P<run_id>[^/]+)/usage/?$", runs.RunUsage.as_view()),
    re_path(r"^runs/(?P<run_id>[^/]+)/metrics/?$", runs.RunMetrics.as_view()),
    re_path(r"^runs/(?P<run_id>[^/]+)/trace/?$", runs.RunTrace.as_view()),
    re_path(r"^steps/?$", steps.Steps.as_view()),
    re_path(r"^steps/(?P<step_id>[^/]+)/?$", steps.StepDetail.as_view()),
    re_path(r"^steps/(?P<step_id>[^/]+)/messages/?$", steps.StepMessages.as_view()),
    re_path(r"^steps/(?P<step_id>[^/]+)/metrics/?$", steps.StepMetrics.as_view()),
    re_path(r"^steps/(?P<step_id>[^/]+)/feedback/?$", steps.StepFeedback.as_view()),
    re_path(r"^steps/(?P<step_id>[^/]+)/trace/?$", steps.StepTrace.as_view()),
    re_path(r"^telemetry/(?P<step_id>[^/]+)/?$", steps.StepTrace.as_view()),
    # models
    re_path(r"^models/?$", models.Models.as_view()),
    re_path(r"^models/embedding/?$", models.EmbeddingModels.as_view()),
    re_path(r"^providers/?$", models.Providers.as_view()),
]
