"""A scripted stand-in for the two model vendors: loopback HTTP, strict like the real ones, told what to answer.

In a test: ``provider.script("marker in the conversation", answer(text("hi")))``, then
``assert provider.refused == []``. From a shell: ``python -m tests.scripted --port 9000``.
"""
