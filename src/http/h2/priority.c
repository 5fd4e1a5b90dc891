/*
 * Each urgency has two lists: of streams that are incremental, and of those that are not.
 */
#include "http/h2/priority.h"

/* One member of a structured dictionary (RFC 8941 3.2): "u=N", "i", "i=?0" or "i=?1". */
static void apply_member(struct h2_priority *priority, struct str member)
{
    struct str rest = member;
    struct str value = str_trim(str_cut(&rest, ';')); /* parameters are ignored */

    if (value.length == 3 && str_starts(value, STR("u=")) && value.data[2] >= '0' && value.data[2] <= '7')
        priority->urgency = (uint8_t)(value.data[2] - '0');
    else if (str_equal(value, STR("i")) || str_equal(value, STR("i=?1")))
        priority->incremental = true;
    else if (str_equal(value, STR("i=?0")))
        priority->incremental = false;
}

void h2_priority_parse(struct h2_priority *priority, struct str value)
{
    while (value.data)
        apply_member(priority, str_cut(&value, ','));
}

void h2_schedule_init(struct h2_schedule *schedule)
{
    *schedule = (struct h2_schedule){0};
    for (unsigned i = 0; i < H2_URGENCIES; i++) {
        list_init(&schedule->whole[i]);
        list_init(&schedule->incremental[i]);
    }
}

void h2_schedule_entry_init(struct h2_schedule_entry *entry, struct h2_priority priority)
{
    list_init(&entry->link);
    entry->priority = priority;
}

static struct list *queue_of(struct h2_schedule *schedule, const struct h2_schedule_entry *entry)
{
    unsigned urgency = entry->priority.urgency;

    return entry->priority.incremental ? &schedule->incremental[urgency] : &schedule->whole[urgency];
}

void h2_schedule_add(struct h2_schedule *schedule, struct h2_schedule_entry *entry)
{
    if (!list_empty(&entry->link))
        return;
    list_push(queue_of(schedule, entry), &entry->link);
    schedule->count++;
    schedule->ready |= (uint8_t)(1u << entry->priority.urgency);
}

void h2_schedule_remove(struct h2_schedule *schedule, struct h2_schedule_entry *entry)
{
    unsigned urgency = entry->priority.urgency;

    if (list_empty(&entry->link))
        return;
    list_remove(&entry->link);
    schedule->count--;
    if (list_empty(&schedule->whole[urgency]) && list_empty(&schedule->incremental[urgency]))
        schedule->ready &= (uint8_t)~(1u << urgency);
}

void h2_schedule_change(struct h2_schedule *schedule, struct h2_schedule_entry *entry, struct h2_priority priority)
{
    bool ready = !list_empty(&entry->link);

    h2_schedule_remove(schedule, entry);
    entry->priority = priority;
    if (ready)
        h2_schedule_add(schedule, entry);
}

/* Chooses between both kinds of one urgency; an incremental stream moves to the end of its list. */
static struct list *next_of(struct h2_schedule *schedule, unsigned urgency)
{
    struct list *whole = &schedule->whole[urgency];
    struct list *incremental = &schedule->incremental[urgency];
    uint8_t bit = (uint8_t)(1u << urgency);
    bool use_incremental = list_empty(whole) || (!list_empty(incremental) && (schedule->alternate & bit));
    struct list *next;

    schedule->alternate ^= bit;
    if (!use_incremental)
        return whole->next;
    next = incremental->next;
    list_remove(next);
    list_push(incremental, next);
    return next;
}

struct h2_schedule_entry *h2_schedule_next(struct h2_schedule *schedule)
{
    unsigned ready = schedule->ready;
    unsigned urgency;

    if (ready == 0)
        return NULL;
    urgency = (unsigned)__builtin_ctz(ready);
    if (++schedule->frames >= H2_SHARE) {
        schedule->frames = 0;
        urgency = 31 - (unsigned)__builtin_clz(ready);
    }
    return container_of(next_of(schedule, urgency), struct h2_schedule_entry, link);
}
