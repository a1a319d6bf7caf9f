"""From queries to the text that is given: sources, choosing, passages, fitting into a budget, framing."""
