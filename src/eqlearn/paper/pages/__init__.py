"""The paper's results in Markdown, from ledgers alone."""
