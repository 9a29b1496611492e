"""Paths of the agents' API, below /v1/; each with and without the trailing slash."""

from __future__ import annotations

from django.urls import re_path

from agents.views import conversations, messages, models, runs, steps

urlpatterns = [
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
