"""Turns queries into the text that an agent is given.

Entry points: `retrieve` runs the sources, and the other modules are steps that a pipeline applies in turn.
Call path: `sources` (contexts) → `retrieve` (deadline, merging) → `dedupe` (bar, duplicates) → `passages` (the relevant
part of long texts) → `fit` (token budget, with `counting`) → `frame` (delimited text).
"""
