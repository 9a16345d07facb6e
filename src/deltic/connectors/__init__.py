"""Sources and sinks: how changes come in, and how views go out."""
