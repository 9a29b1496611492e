"""Paths of the pages about agents and their calls."""

from __future__ import annotations

from django.urls import path

from agents.views.pages import agents, beside, decide, detail, queue, runs, start, tools

urlpatterns = [
    path("", start.start, name="start"),
    # calls that people decide
    path("approvals/", queue.queue, name="approvals"),
    path("approvals/pulse/", queue.pulse, name="approvals-pulse"),
    path("approvals/bulk/", queue.bulk, name="approvals-bulk"),
    path("approvals/<str:call_id>/", detail.detail, name="approval"),
    path("approvals/<str:call_id>/decide/", decide.decide, name="approval-decide"),
    path("approvals/<str:call_id>/claim/", beside.claim, name="approval-claim"),
    path("approvals/<str:call_id>/release/", beside.release, name="approval-release"),
    path("approvals/<str:call_id>/comment/", beside.comment, name="approval-comment"),
    path("approvals/<str:call_id>/extend/", beside.extend, name="approval-extend"),
    path("approvals/<str:call_id>/undo/", beside.undo, name="approval-undo"),
    path("approvals/<str:call_id>/reveal/", beside.reveal, name="approval-reveal"),
    path("conversations/<str:conversation_id>/unstick/", beside.unstick, name="unstick"),
    # agents
    path("agents/", agents.agents, name="agents"),
    path("agents/<str:agent_id>/", agents.agent, name="agent"),
    path("agents/<str:agent_id>/message/", agents.message, name="agent-message"),
    path("agents/<str:agent_id>/approval/", agents.approval, name="agent-approval"),
    path("agents/<str:agent_id>/blocks/<str:block_id>/", agents.block, name="agent-block"),
    path("agents/<str:agent_id>/blocks/<str:block_id>/edit/", agents.edit_block, name="agent-block-edit"),
    # runs
    path("runs/", runs.runs, name="runs"),
    path("runs/<str:run_id>/", runs.run, name="run"),
    path("runs/<str:run_id>/cancel/", runs.cancel, name="run-cancel"),
    # tools
    path("tools/", tools.tools, name="tools"),
    path("tools/<str:tool_id>/", tools.tool, name="tool"),
]
