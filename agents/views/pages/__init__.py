"""The pages that people see. Each view is short: the row by policy, the action, the template."""
