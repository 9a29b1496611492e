"""The rows of agents. Constraints keep what the code must never break."""

from agents.models.agent import Agent, AgentBlock, AgentTag, AgentTool, AgentVariable, Block
from agents.models.conversation import Conversation, Message, MessageContext, MessageRole
from agents.models.event import EventSegment
from agents.models.outbox import OutboxItem
from agents.models.run import Driver, Process, Run, RunStatus, Step, StepStatus
from agents.models.token import TokenName
from agents.models.toolcall import (
    CallComment,
    CallKind,
    CallState,
    Decision,
    DecisionKind,
    ToolCall,
)

__all__ = [
    "Agent",
    "AgentBlock",
    "AgentTag",
    "AgentTool",
    "AgentVariable",
    "Block",
    "CallComment",
    "CallKind",
    "CallState",
    "Conversation",
    "Decision",
    "DecisionKind",
    "Driver",
    "EventSegment",
    "Message",
    "MessageContext",
    "MessageRole",
    "OutboxItem",
    "Process",
    "Run",
    "RunStatus",
    "Step",
    "StepStatus",
    "TokenName",
    "ToolCall",
]
