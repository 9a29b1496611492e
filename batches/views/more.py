"""/api/batches: what Letta's form has no place for."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.policies.rights import SEND
from agents.wire.approvals import approval_row
from batches import actions, filters
from batches.models import BatchJob
from batches.poll.close import members_by_state
from batches.wire.items import item_state, llm_batch_state
from batches.wire.jobs import batch_detail
from lettaweb.lib.paging import page_of, shown


def detail(job: BatchJob) -> Response:
    return Response(batch_detail(job, members_by_state(job)))


class Batch(APIView):
    """GET /api/batches/{batch_id}: progress, cost, and why it stands still."""

    def get(self, request: Request, batch_id: str) -> Response:
        return detail(filters.job(batch_id))


class LLMBatches(APIView):
    """GET /api/batches/{batch_id}/llm-batches, newest first."""

    def get(self, request: Request, batch_id: str) -> Response:
        job = filters.job(batch_id)
        rows = shown(job.llm_batches.all(), page_of(request.query_params, limit=100))
        return Response([llm_batch_state(llm, job) for llm in rows])


class Items(APIView):
    """GET /api/batches/{batch_id}/items, newest first; filters llm_batch_id, agent_id, state, request_status."""

    def get(self, request: Request, batch_id: str) -> Response:
        job = filters.job(batch_id)
        rows = shown(filters.items_of(request.query_params, job), page_of(request.query_params, limit=100))
        return Response([item_state(item, job) for item in rows])


class Approvals(APIView):
    """GET /api/batches/{batch_id}/approvals: the calls of its members that wait for people."""

    def get(self, request: Request, batch_id: str) -> Response:
        job = filters.job(batch_id)
        rows = shown(filters.waiting_calls(job), page_of(request.query_params, limit=100, order="asc"))
        return Response([approval_row(call) for call in rows])


class Retry(APIView):
    """POST /api/batches/{batch_id}/retry: ask again for every member that failed."""

    right = SEND

    def post(self, request: Request, batch_id: str) -> Response:
        return Response({"retried": actions.retry_failed(filters.job(batch_id))})


class Pause(APIView):
    """POST /api/batches/{batch_id}/pause"""

    right = SEND

    def post(self, request: Request, batch_id: str) -> Response:
        return detail(actions.pause(filters.job(batch_id), request.user))


class Resume(APIView):
    """POST /api/batches/{batch_id}/resume"""

    right = SEND

    def post(self, request: Request, batch_id: str) -> Response:
        return detail(actions.resume(filters.job(batch_id)))
