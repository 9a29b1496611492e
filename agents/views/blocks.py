"""The REST API of memory blocks, on their own and as an agent's core memory."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.actions import blocks as actions
from agents.filters.agents import ORDER_BY
from agents.filters.blocks import blocks_of
from agents.models import Agent
from agents.policies import blocks, rows
from agents.serializers.blocks import BlockUpdate, CreateBlock
from agents.views.agents import state_of, states_of
from agents.wire.blocks import block_state, memory_state
from lettaweb.lib import bodies
from lettaweb.lib.paging import page_of, shown


class Blocks(APIView):
    """/v1/blocks/"""

    takes = {"POST": CreateBlock}

    def get(self, request: Request) -> Response:
        found = shown(blocks_of(request.query_params), page_of(request.query_params, order="asc"))
        return Response([block_state(block) for block in found])

    def post(self, request: Request) -> Response:
        given = bodies.given(bodies.read(CreateBlock, request))
        return Response(block_state(actions.create_block(given)))


class BlockCount(APIView):
    """/v1/blocks/count"""

    def get(self, request: Request) -> Response:
        return Response(blocks_of(request.query_params).count())


class BlockDetail(APIView):
    """/v1/blocks/{block_id}"""

    takes = {"PATCH": BlockUpdate}

    def get(self, request: Request, block_id: str) -> Response:
        return Response(block_state(blocks.block(block_id)))

    def patch(self, request: Request, block_id: str) -> Response:
        block = blocks.block(block_id)
        given = bodies.given(bodies.read(BlockUpdate, request))
        return Response(block_state(actions.update_block(block, given)))

    def delete(self, request: Request, block_id: str) -> Response:
        actions.delete_block(blocks.block(block_id))
        return Response(None)


class BlockAgents(APIView):
    """/v1/blocks/{block_id}/agents"""

    def get(self, request: Request, block_id: str) -> Response:
        having = Agent.objects.filter(agentblock__block=blocks.block(block_id))
        return states_of(request, shown(having, page_of(request.query_params, order_by=ORDER_BY)))


class CoreMemory(APIView):
    """/v1/agents/{agent_id}/core-memory"""

    def get(self, request: Request, agent_id: str) -> Response:
        agent = rows.agent(agent_id)
        blocks = [block_state(block) for block in agent.blocks.order_by("agentblock__id")]
        return Response(memory_state(agent, blocks))


class CoreBlocks(APIView):
    """/v1/agents/{agent_id}/core-memory/blocks"""

    def get(self, request: Request, agent_id: str) -> Response:
        mine = rows.named_agent(agent_id).blocks.all()
        found = shown(mine, page_of(request.query_params, limit=100))
        return Response([block_state(block) for block in found])


class CoreBlock(APIView):
    """/v1/agents/{agent_id}/core-memory/blocks/{block_label}; a label may hold slashes."""

    takes = {"PATCH": BlockUpdate}

    def get(self, request: Request, agent_id: str, block_label: str) -> Response:
        return Response(block_state(blocks.labelled(rows.named_agent(agent_id), block_label)))

    def patch(self, request: Request, agent_id: str, block_label: str) -> Response:
        block = blocks.labelled(rows.named_agent(agent_id), block_label)
        given = bodies.given(bodies.read(BlockUpdate, request))
        return Response(block_state(actions.update_block(block, given)))


class AttachBlock(APIView):
    """/v1/agents/{agent_id}/core-memory/blocks/attach/{block_id}"""

    def patch(self, request: Request, agent_id: str, block_id: str) -> Response:
        agent = rows.agent(agent_id)
        actions.attach_block(agent, blocks.block(block_id))
        return state_of(request, agent)


class DetachBlock(APIView):
    """/v1/agents/{agent_id}/core-memory/blocks/detach/{block_id}"""

    def patch(self, request: Request, agent_id: str, block_id: str) -> Response:
        agent = rows.agent(agent_id)
        actions.detach_block(agent, blocks.block(block_id))
        return state_of(request, agent)
