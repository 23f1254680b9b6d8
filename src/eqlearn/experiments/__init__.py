"""The paper's experiments, as values: data, settings, the paper's own figures beside ours."""
