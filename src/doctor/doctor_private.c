/*
 * Collects and replaces private words.
 */
#include "doctor/doctor_private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <net/if.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST_WORD    "[host]"
#define USER_WORD    "[user]"
#define HOME_WORD    "[home]"
#define ADDRESS_WORD "[address]"

/* FIRST_USER: lower user ids belong to system accounts, whose names identify no person. */
enum { FIRST_USER = 1000, LEAST_LENGTH = 2 };

void private_words_add(struct private_words *words, const char *text, const char *replacement)
{
    struct private_word *word = &words->words[words->count];

    if (!text || strlen(text) < LEAST_LENGTH || strlen(text) >= sizeof(word->text) || words->count == PRIVATE_WORDS)
        return;
    for (unsigned i = 0; i < words->count; i++) {
        if (strcmp(words->words[i].text, text) == 0)
            return;
    }
    snprintf(word->text, sizeof(word->text), "%s", text);
    snprintf(word->replacement, sizeof(word->replacement), "%s", replacement);
    words->count++;
}

static void add_host(struct private_words *words)
{
    char name[HOST_NAME_MAX + 1] = "";

    if (gethostname(name, sizeof(name) - 1) < 0 || strcmp(name, "localhost") == 0)
        return;
    private_words_add(words, name, HOST_WORD);
    name[strcspn(name, ".")] = '\0';
    private_words_add(words, name, HOST_WORD);
}

static void add_home(struct private_words *words, const char *home)
{
    if (home && strcmp(home, "/root") != 0 && strcmp(home, "/nonexistent") != 0)
        private_words_add(words, home, HOME_WORD);
}

/* Adds a user with the home directory; `name` may be NULL. */
static void add_user(struct private_words *words, const char *name)
{
    const struct passwd *entry = name ? getpwnam(name) : NULL;

    if (!name || (entry && entry->pw_uid < FIRST_USER))
        return;
    if (entry)
        add_home(words, entry->pw_dir);
    private_words_add(words, name, USER_WORD);
}

static void add_users(struct private_words *words)
{
    static const char *const variables[] = {"USER", "LOGNAME", "SUDO_USER", "DOAS_USER"};
    const struct passwd *entry = getpwuid(getuid());
    char name[256] = "";

    if (entry)
        snprintf(name, sizeof(name), "%s", entry->pw_name); /* getpwnam overwrites the entry */
    add_home(words, getenv("HOME"));
    add_user(words, entry ? name : NULL);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        add_user(words, getenv(variables[i]));
}

static void add_device(struct private_words *words, const char *name)
{
    char replacement[24];
    unsigned before = words->count;

    if (name[0] == '.' || strcmp(name, "lo") == 0 || strcmp(name, "bonding_masters") == 0)
        return;
    snprintf(replacement, sizeof(replacement), "[device %u]", words->devices + 1);
    private_words_add(words, name, replacement);
    words->devices += words->count - before;
}

/* Adds the names in /sys/class/net, in the order in which the examinations report them. */
static void add_devices(struct private_words *words)
{
    struct dirent **entries;
    int count = scandir("/sys/class/net", &entries, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        add_device(words, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static void add_addresses(struct private_words *words)
{
    struct ifaddrs *first;

    if (getifaddrs(&first) < 0)
        return;
    for (const struct ifaddrs *at = first; at; at = at->ifa_next) {
        bool ip4 = at->ifa_addr && at->ifa_addr->sa_family == AF_INET;
        bool ip6 = at->ifa_addr && at->ifa_addr->sa_family == AF_INET6;
        char text[NI_MAXHOST];

        if ((!ip4 && !ip6) || (at->ifa_flags & IFF_LOOPBACK))
            continue;
        if (getnameinfo(at->ifa_addr, ip4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6), text,
                        sizeof(text), NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        text[strcspn(text, "%")] = '\0';
        private_words_add(words, text, ADDRESS_WORD);
    }
    freeifaddrs(first);
}

static int longer_first(const void *a, const void *b)
{
    const struct private_word *left = a, *right = b;
    size_t left_length = strlen(left->text), right_length = strlen(right->text);

    return (left_length < right_length) - (left_length > right_length);
}

void private_words_collect(struct private_words *words)
{
    add_host(words);
    add_users(words);
    add_devices(words);
    add_addresses(words);
    qsort(words->words, words->count, sizeof(words->words[0]), longer_first);
}

static bool is_word_byte(struct str text, size_t at)
{
    return at < text.length && isalnum((unsigned char)text.data[at]);
}

/* Returns the word at this place, or NULL. */
static const struct private_word *word_at(const struct private_words *words, struct str text, size_t at)
{
    if (at > 0 && is_word_byte(text, at - 1))
        return NULL;
    for (unsigned i = 0; i < words->count; i++) {
        struct str word = str_from(words->words[i].text);

        if (str_starts(str_skip(text, at), word) && !is_word_byte(text, at + word.length))
            return &words->words[i];
    }
    return NULL;
}

int private_words_replace(const struct private_words *words, struct str text, struct buffer *out)
{
    size_t copied = 0;
    int error = 0;

    for (size_t at = 0; at < text.length && error == 0;) {
        const struct private_word *word = word_at(words, text, at);

        if (!word) {
            at++;
            continue;
        }
        error = buffer_append(out, str_slice(text, copied, at));
        if (error == 0)
            error = buffer_append(out, str_from(word->replacement));
        at += strlen(word->text);
        copied = at;
    }
    return error < 0 ? error : buffer_append(out, str_skip(text, copied));
}
