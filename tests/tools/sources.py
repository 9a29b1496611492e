"""Sources of tools for tests."""

from __future__ import annotations

SECRET_CODE = '''def get_secret_code_tool(input_text: str) -> str:
    """
    Gives the code of a text.
    Args:
        input_text (str): Any text.
    Returns:
        str: The code.
    """
    return "code-" + str(len(input_text))
'''

ROLL_DICE = '''def roll_dice_tool(num_sides: int) -> str:
    """Rolls a die.

    Args:
        num_sides (int): How many sides it has.
    """
    return str(num_sides)
'''

FAILS = '''def always_fails(text: str) -> str:
    """Fails.

    Args:
        text (str): Any text.
    """
    raise RuntimeError("boom: " + text)
'''


def tool_named(name: str, description: str = "Does something.") -> str:
    """The source of a tool without parameters."""
    return f'def {name}() -> str:\n    """{description}"""\n    return "done"\n'
