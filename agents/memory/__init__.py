"""What an agent keeps in mind: its blocks, its prompt, and the tools that work on them."""
