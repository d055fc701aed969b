/* Intrusive doubly linked list: a link in the object, a head in the owner, no allocation. A state
 * that is "being on a list" cannot disagree with the list. */
#ifndef RETRYD_CORE_BASE_LIST_H
#define RETRYD_CORE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define list_entry(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_push_back(struct list *head, struct list *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

static inline void list_push_front(struct list *head, struct list *link)
{
    list_push_back(head->next, link);
}

/* Safe on a link that is on no list (initialised or just removed). */
static inline void list_remove(struct list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}

#endif
