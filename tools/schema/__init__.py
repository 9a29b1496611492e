"""What a model is told about a tool: from its source, which is only parsed, or as a request brings it."""

from tools.schema.derivation import ToolSchema, derive
from tools.schema.errors import SchemaError
from tools.schema.given import check_json_schema, check_tool_name
from tools.schema.source import decode_source
from tools.schema.strictness import strict

__all__ = ["SchemaError", "ToolSchema", "check_json_schema", "check_tool_name", "decode_source", "derive", "strict"]
