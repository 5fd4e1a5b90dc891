/*
 * An intrusive, circular, doubly linked list. A node outside any list points at itself, so that list_remove may be
 * called twice.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *previous;
};

#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Initialises an empty list, or a node that is in no list. */
static inline void list_init(struct list *list)
{
    list->next = list->previous = list;
}

/* True for an empty list, and for a node that is in no list. */
static inline bool list_empty(const struct list *list)
{
    return list->next == list;
}

/* Inserts a node that is in no list before `where`. If `where` is the list itself, the node becomes the last. */
static inline void list_insert_before(struct list *where, struct list *node)
{
    node->next = where;
    node->previous = where->previous;
    where->previous->next = node;
    where->previous = node;
}

/* Appends a node that is in no list. */
static inline void list_push(struct list *list, struct list *node)
{
    list_insert_before(list, node);
}

/* Removes a node; no effect on one that is in no list. */
static inline void list_remove(struct list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    list_init(node);
}

/* Removes and returns the first node, or NULL. */
static inline struct list *list_pop(struct list *list)
{
    struct list *first = list->next;

    if (first == list)
        return NULL;
    list_remove(first);
    return first;
}

#endif
