"""Sources of tools that stories use; NAME stands for the tool's own name."""

from __future__ import annotations

ECHO = '''
def NAME(text: str) -> str:
    """
    Gives the text back.

    Args:
        text (str): Any text.
    """
    return "echo " + text
'''

BOOM = '''
def NAME(text: str) -> str:
    """
    Fails.

    Args:
        text (str): What the error says.
    """
    raise RuntimeError("boom " + text)
'''

SQUARE = '''
def NAME(number: int) -> int:
    """
    Squares a number.

    Args:
        number (int): The number.
    """
    return number * number
'''

SLOW = '''
def NAME(seconds: float) -> str:
    """
    Waits.

    Args:
        seconds (float): How long.
    """
    import time

    time.sleep(seconds)
    return f"slept {seconds}"
'''

NOTHING = '''
def NAME() -> str:
    """Takes nothing."""
    return "done"
'''

REMEMBER = '''
def NAME(agent_state: "AgentState", value: str) -> str:
    """
    Writes to the block human.

    Args:
        value (str): The new value.
    """
    agent_state.memory.update_block_value(label="human", value=value)
    return "written"
'''
