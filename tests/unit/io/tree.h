/* A directory with one file of each type, for the tests of files. */
#ifndef TESTS_IO_TREE_H
#define TESTS_IO_TREE_H

extern char root[64];

/* Returns "ROOT/name" in one of four buffers, which the function uses in turn. */
char *in_root(const char *name);
/* Writes a file. */
void tree_write_file(const char *name, const char *text);
void make_root(void);
void remove_root(void);

#endif
