/*
 * Formats values for display.
 */
#include "top/top_text.h"

#include <stdio.h>

#define LARGEST 1e18 /* larger values are printed with an exponent */

static struct top_text format_scaled(double value, double step, const char *const *units)
{
    struct top_text out;
    unsigned unit = 0;
    int decimals = 0;

    if (value >= LARGEST) {
        snprintf(out.text, sizeof(out.text), "%.0e%s", value, units[0]);
        return out;
    }
    while (value >= 999.5 && units[unit + 1]) {
        value /= step;
        unit++;
    }
    if (value < 9.995)
        decimals = 2;
    else if (value < 99.95)
        decimals = 1;
    if (unit == 0 && value == (double)(unsigned)value)
        decimals = 0;
    snprintf(out.text, sizeof(out.text), "%.*f%s", decimals, value, units[unit]);
    return out;
}

struct top_text top_count(double value)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", NULL};

    return format_scaled(value, 1000, units);
}

struct top_text top_bytes(double value)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", NULL};

    return format_scaled(value, 1024, units);
}

struct top_text top_duration(double seconds)
{
    static const char *const units[] = {" us", " ms", NULL};
    struct top_text out;

    if (seconds < 0.9995)
        return format_scaled(seconds * 1e6, 1000, units);
    snprintf(out.text, sizeof(out.text), seconds < 1e5 ? "%.2f s" : "%.0e s", seconds);
    return out;
}

struct top_text top_share(double share)
{
    struct top_text out;

    snprintf(out.text, sizeof(out.text), "%.1f%%", share * 100);
    return out;
}

void top_uptime(int64_t seconds, char into[32])
{
    int64_t days = seconds / 86400;

    if (seconds < 0 || days > 99999)
        snprintf(into, 32, "?");
    else if (days > 0)
        snprintf(into, 32, "%dd %02d:%02d:%02d", (int)days, (int)(seconds / 3600 % 24), (int)(seconds / 60 % 60),
                 (int)(seconds % 60));
    else
        snprintf(into, 32, "%02d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60), (int)(seconds % 60));
}

void top_escape(struct str text, char *into, size_t size)
{
    size_t length = 0;

    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        bool plain = byte >= ' ' && byte <= '~' && byte != '\\';
        size_t needed = plain ? 1 : 4;

        if (length + needed >= size) {
            into[size - 2 < length ? size - 2 : length] = '~';
            length = size - 2 < length ? size - 1 : length + 1;
            break;
        }
        if (plain)
            into[length] = (char)byte;
        else
            snprintf(into + length, 5, "\\x%02x", byte);
        length += needed;
    }
    into[length] = '\0';
}
