"""Planners: which transition each part of the volume needs next. The engine asks them in the order of facts/datamesh 4.3."""
