# Replaces links to sources, which are not installed, by their text.
s,\[([^]]*)\]\(\.\./(tests/|SECURITY)[^)]*\),\1,g
