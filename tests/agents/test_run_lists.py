"""Lists of runs and steps: the runs' own cursors, every filter, what belongs to a run and to a step."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from agents.models import Agent, CallState, EventSegment, Run, RunStatus, Step
from tests.agents import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make.make_agent()


def get(path: str, params: Mapping[str, Any] | None = None) -> Any:
    return APIClient().get(f"/v1/{path}", params or {})


def found(path: str, params: Mapping[str, Any] | None = None) -> list[str]:
    answer = get(path, params)
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()]


# runs are numbered 1 (oldest) to 5: after is newer and before is older, whatever the order
RUN_PAGES = [
    ({}, "54321"),
    ({"order": "asc"}, "12345"),
    ({"ascending": "true"}, "54321"),
    ({"limit": 2}, "54"),
    ({"limit": 2, "order": "asc"}, "12"),
    ({"limit": 0}, ""),
    ({"after": 3}, "54"),
    ({"after": 3, "order": "asc"}, "45"),
    ({"before": 3}, "21"),
    ({"before": 3, "order": "asc"}, "12"),
    ({"before": 3, "limit": 1}, "2"),
    ({"after": 1, "before": 5}, "432"),
    ({"after": "unknown"}, "54321"),
    ({"before": "nonsense"}, "54321"),
]


@pytest.mark.parametrize(("asked", "expected"), RUN_PAGES)
def test_it_pages_runs_by_time(agent: Agent, asked: dict[str, Any], expected: str) -> None:
    runs = [make.make_run(make.default_of(agent)) for _ in range(5)]
    for path in ("runs/", "runs"):
        assert found(path, _with_cursors(asked, runs)) == [runs[int(number) - 1].wire_id for number in expected]


# steps page as agents do: after is further down the list shown
STEP_PAGES = [
    ({}, "54321"),
    ({"order": "asc"}, "12345"),
    ({"after": 3}, "21"),
    ({"after": 3, "order": "asc"}, "45"),
    ({"before": 3}, "54"),
    ({"before": 3, "order": "asc"}, "12"),
    ({"after": 4, "limit": 2}, "32"),
    ({"limit": 0}, ""),
    ({"after": "unknown"}, "54321"),
]


@pytest.mark.parametrize(("asked", "expected"), STEP_PAGES)
def test_it_pages_steps_down_the_list(agent: Agent, asked: dict[str, Any], expected: str) -> None:
    run = make.make_run(make.default_of(agent))
    steps = [make.make_step(run, number) for number in range(5)]
    params = _with_cursors(asked, steps)
    for path in ("steps/", f"runs/{run.wire_id}/steps"):
        assert found(path, params) == [steps[int(number) - 1].wire_id for number in expected]


def _with_cursors(asked: Mapping[str, Any], rows: list[Any]) -> dict[str, Any]:
    unknown = {"unknown": f"{rows[0].PREFIX}-{uuid4()}", "nonsense": "nonsense\x00"}
    return {
        name: rows[value - 1].wire_id
        if isinstance(value, int) and name in ("after", "before")
        else unknown.get(value, value)
        for name, value in asked.items()
    }


@pytest.mark.parametrize("path", ["runs/", "runs/active", "steps/"])
@pytest.mark.parametrize(
    "params",
    [{"limit": "-1"}, {"limit": "x"}, {"limit": str(10**20)}, {"order": "up"}, {"order_by": "x"}, {"agent_id": "x"}],
)
def test_it_refuses_a_bad_parameter(path: str, params: dict[str, str]) -> None:
    assert get(path, params).status_code == 422


@pytest.mark.parametrize(
    "params",
    [
        {"statuses": "lost"},
        {"background": "perhaps"},
        {"active": "x"},
        {"conversation_id": "x"},
        {"step_count": "x"},
        {"step_count": "1", "step_count_operator": "ne"},
    ],
)
def test_it_refuses_a_bad_filter_of_runs(params: dict[str, str]) -> None:
    assert get("runs/", params).status_code == 422


@pytest.mark.parametrize(
    "params",
    [{"feedback": "neutral"}, {"has_feedback": "x"}, {"start_date": "x"}, {"end_date": "2026-13-45T99:00:00Z"}],
)
def test_it_refuses_a_bad_filter_of_steps(params: dict[str, str]) -> None:
    assert get("steps/", params).status_code == 422


def test_it_filters_runs(agent: Agent) -> None:
    other = make.make_agent("other", base_template_id="family-1")
    default, side = make.default_of(agent), make.make_conversation(agent)
    done = make.make_run(default, steps_count=2, background=True)
    failed = make.make_run(side, RunStatus.FAILED, stop_reason="llm_api_error", steps_count=1)
    active = make.make_run(default, RunStatus.RUNNING)
    foreign = make.make_run(make.default_of(other), RunStatus.CREATED)
    asked: list[tuple[dict[str, Any], list[Run]]] = [
        ({"agent_id": agent.wire_id}, [active, failed, done]),
        ({"agent_ids": [agent.wire_id, other.wire_id]}, [foreign, active, failed, done]),
        ({"agent_id": f"agent-{uuid4()}"}, []),
        ({"statuses": "failed"}, [failed]),
        ({"statuses": ["failed", "completed"]}, [failed, done]),
        ({"active": "true"}, [foreign, active]),
        ({"active": "false"}, [foreign, active, failed, done]),
        ({"active": "true", "agent_id": agent.wire_id}, [active]),
        ({"background": "true"}, [done]),
        ({"background": "false"}, [foreign, active, failed]),
        ({"stop_reason": "llm_api_error"}, [failed]),
        ({"stop_reason": "nothing\x00"}, []),
        ({"conversation_id": side.wire_id}, [failed]),
        ({"conversation_id": "default"}, [foreign, active, done]),
        ({"conversation_id": f"conv-{uuid4()}"}, []),
        ({"step_count": "1"}, [failed]),
        ({"step_count": "1", "step_count_operator": "gte"}, [failed, done]),
        ({"step_count": "1", "step_count_operator": "lte"}, [foreign, active, failed]),
        ({"template_family": "family-1"}, [foreign]),
    ]
    for params, expected in asked:
        assert found("runs/", params) == [run.wire_id for run in expected], params
    assert found("runs/active") == [foreign.wire_id, active.wire_id]
    assert found("runs/active/", {"agent_id": agent.wire_id}) == [active.wire_id]


def test_it_filters_runs_by_the_tools_they_used(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    make.make_run(make.default_of(agent))
    make.make_call(make.make_answer(run, [make.call_part("c1")]), "c1", state=CallState.DONE, result_ok=True)
    assert found("runs/", {"tools_used": ["refund", "other"]}) == [run.wire_id]
    assert found("runs/", {"tools_used": "other"}) == []
    assert get(f"runs/{run.wire_id}/metrics").json()["tools_used"] == ["refund"]


def test_it_filters_steps(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    old = make.make_step(run, 0, feedback="positive", tags=["good", "größer"])
    new = make.make_step(run, 1, model="gpt-5", tags=['a "b"'])
    other = make.make_step(make.make_run(make.default_of(make.make_agent("other", project_id="p1"))))
    Step.objects.filter(pk=old.pk).update(created_at=make.START)
    day = "2026-03-01T13:00:00+01:00"
    asked: list[tuple[dict[str, Any], list[Step]]] = [
        ({"agent_id": agent.wire_id}, [new, old]),
        ({"model": "gpt-5"}, [new]),
        ({"model": "openai/gpt-5"}, [new]),
        ({"trace_ids": ["t1"]}, []),
        ({"feedback": "positive"}, [old]),
        ({"feedback": "negative"}, []),
        ({"has_feedback": "true"}, [old]),
        ({"has_feedback": "false"}, [other, new]),
        ({"tags": ["good"]}, [old]),
        ({"tags": ["größer", "missing"]}, [old]),
        ({"tags": ['a "b"']}, [new]),
        ({"tags": ["goo"]}, []),
        ({"project_id": "p1"}, [other]),
        ({"start_date": day}, [other, new, old]),
        ({"start_date": "2026-03-01T12:00:01Z"}, [other, new]),
        ({"end_date": day}, []),
        ({"end_date": "2026-03-01T12:00:01"}, [old]),
        ({"end_date": "2026-03-02"}, [old]),
        ({"start_date": "2026-03-01T13:00:01 01:00"}, [other, new]),
    ]
    for params, expected in asked:
        assert found("steps/", params) == [step.wire_id for step in expected], params


def test_it_shows_a_run_with_every_field(agent: Agent) -> None:
    side = make.make_conversation(agent)
    run = make.make_run(
        make.default_of(agent), options={"use_assistant_message": False, "client_tools": []}, metadata={"k": 1}
    )
    shown = get(f"runs/{run.wire_id}").json()
    assert shown["id"] == run.wire_id
    assert (shown["status"], shown["stop_reason"]) == ("completed", "end_turn")
    assert shown["agent_id"] == agent.wire_id
    assert shown["conversation_id"] is None
    assert shown["completed_at"] == "2026-03-01T12:00:00.000000Z"
    assert shown["metadata"] == {"k": 1}
    assert shown["request_config"] == {
        "use_assistant_message": False,
        "assistant_message_tool_name": "send_message",
        "assistant_message_tool_kwarg": "message",
        "include_return_message_types": None,
    }
    in_side = make.make_run(side)
    assert get(f"runs/{in_side.wire_id}/").json()["conversation_id"] == side.wire_id


def test_it_adds_up_usage_and_times(agent: Agent) -> None:
    run = make.make_run(
        make.default_of(agent),
        input_tokens=10,
        output_tokens=5,
        cached_tokens=3,
        cache_write_tokens=2,
        reasoning_tokens=1,
        started_at=make.START - timedelta(seconds=2),
        steps_count=1,
    )
    usage = get(f"runs/{run.wire_id}/usage").json()
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (10, 5, 15)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 3
    assert usage["prompt_tokens_details"]["cache_creation_tokens"] == 2
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 1}
    metrics = get(f"runs/{run.wire_id}/metrics").json()
    assert (metrics["run_ns"], metrics["num_steps"]) == (2_000_000_000, 1)
    assert metrics["run_start_ns"] == int((make.START - timedelta(seconds=2)).timestamp()) * 10**9


def test_it_shows_a_step_and_its_times(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    step = make.make_step(
        run, input_tokens=7, output_tokens=2, asked_at=make.START, answered_at=make.START + timedelta(microseconds=5)
    )
    shown = get(f"steps/{step.wire_id}").json()
    assert (shown["run_id"], shown["agent_id"]) == (run.wire_id, agent.wire_id)
    assert (shown["model"], shown["model_handle"]) == ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5")
    assert (shown["prompt_tokens"], shown["completion_tokens"], shown["total_tokens"]) == (7, 2, 9)
    assert shown["messages"] == []
    metrics = get(f"steps/{step.wire_id}/metrics/").json()
    assert (metrics["id"], metrics["llm_request_ns"], metrics["tool_execution_ns"]) == (step.wire_id, 5000, None)
    assert get(f"steps/{step.wire_id}/trace").json() is None
    assert get(f"telemetry/{step.wire_id}").json() is None


@pytest.mark.parametrize(
    ("sent", "feedback", "tags"),
    [
        ({"feedback": "positive"}, "positive", ["old"]),
        ({"feedback": "negative", "tags": ["a", "b"]}, "negative", ["a", "b"]),
        ({"feedback": None}, None, ["old"]),
        ({"tags": []}, "positive", []),
        ({"tags": None}, "positive", []),
        ({}, "positive", ["old"]),
    ],
)
def test_it_takes_feedback_on_a_step(agent: Agent, sent: dict[str, Any], feedback: str | None, tags: list[str]) -> None:
    step = make.make_step(make.make_run(make.default_of(agent)), feedback="positive", tags=["old"])
    answer = APIClient().patch(f"/v1/steps/{step.wire_id}/feedback", sent, format="json")
    assert answer.status_code == 200
    assert (answer.json()["feedback"], answer.json()["tags"]) == (feedback, tags)
    step.refresh_from_db()
    assert (step.feedback, step.tags) == (feedback, tags)


@pytest.mark.parametrize("sent", [{"feedback": "great"}, {"feedback": 1}, {"tags": "x"}, [], "x"])
def test_it_refuses_other_feedback(agent: Agent, sent: Any) -> None:
    step = make.make_step(make.make_run(make.default_of(agent)))
    assert APIClient().patch(f"/v1/steps/{step.wire_id}/feedback", sent, format="json").status_code == 422


def test_it_traces_a_run_by_its_log(agent: Agent) -> None:
    run = make.make_run(make.default_of(agent))
    for first, last, data in ((1, 2, '[["a", 0, "He"], ["a", 0, "llo"]]'), (3, 3, '[["stop", "end_turn"]]')):
        EventSegment.objects.create(run=run, first_seq=first, last_seq=last, epoch=0, data=data, created_at=make.START)
    entries = get(f"runs/{run.wire_id}/trace").json()
    assert [(entry["seq_id"], entry["type"]) for entry in entries] == [(1, "a"), (2, "a"), (3, "stop")]
    assert {entry["run_id"] for entry in entries} == {run.wire_id}
    assert len(get(f"runs/{run.wire_id}/trace", {"limit": 2}).json()) == 2
    assert get(f"runs/{run.wire_id}/trace", {"limit": 0}).json() == []


@pytest.mark.parametrize("rest", ["", "/messages", "/steps", "/usage", "/metrics", "/trace"])
def test_it_answers_bad_and_unknown_runs(rest: str) -> None:
    assert get(f"runs/nonsense{rest}").status_code == 422
    assert get(f"runs/run-{uuid4()}{rest}").status_code == 404


@pytest.mark.parametrize("rest", ["", "/messages", "/metrics", "/trace"])
def test_it_answers_bad_and_unknown_steps(rest: str) -> None:
    assert get(f"steps/nonsense{rest}").status_code == 422
    assert get(f"steps/step-{uuid4()}{rest}").status_code == 404


@pytest.mark.parametrize(("path", "most"), [("runs/", 6), ("steps/", 6), ("runs/active", 6)])
def test_it_reads_no_more_often_for_more_rows(
    agent: Agent, path: str, most: int, django_assert_max_num_queries: Any
) -> None:
    for _ in range(10):
        side = make.make_conversation(agent)
        make.make_step(make.make_run(side))
        make.make_run(side, RunStatus.RUNNING)
    with django_assert_max_num_queries(most):
        assert len(found(path)) >= 10
