"""Websockets: they only tell. Every change comes by POST, where permission and validation stand.

Frames are JSON objects. From us: ``{"type": …}``; ``hello`` comes first, ``ping`` every HEARTBEAT seconds
of silence, ``error`` (with ``code``) answers a frame that cannot be used, and the socket stays open. From
a client: ``{"type": "ping"}`` is answered by ``pong``; each socket knows further types.

======  ==========================================================================================
code    why we close
======  ==========================================================================================
1000    there is nothing more to tell (the run is over)
1011    our mistake; connect again
1012    the server is about to restart; connect again, with the last number
4400    the address makes no sense (an ``after`` that is no number)
4401    nobody is logged in, or the token is not valid
4403    not allowed (any more)
4404    there is no such agent or run
4408    too slow: nothing was read for half of LETTAWEB_READER_SECONDS; connect again, with the last number
======  ==========================================================================================
"""
