# The installed examples are beside the pages. Replaces links to sources, which are not installed, by their text.
s,\]\(\.\./conf/examples/,](../examples/,g
s,\[([^]]*)\]\(\.\./(bench/|tests/|SECURITY)[^)]*\),\1,g
