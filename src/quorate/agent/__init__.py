"""The node agent: brings DRBD and LVM of one node to what the API objects ask for, and reports what is there.

Shape: observe (``drbdsetup status`` and ``show``, LVM reports) → pure plan of commands → run → observe again. All
commands go through one ``Host``; the agent does not know whether the host is real or simulated.
"""
