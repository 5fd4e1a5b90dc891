/*
 * The text of a source file: its characters, its lines, and the offset of a position.
 */
#include "conf/source_text.h"

/* YAML 1.1 chapter 4.1 (printable characters), without its three unusual line breaks. */
bool source_allowed(uint32_t code)
{
    if (code < 32)
        return code == '\t' || code == '\n' || code == '\r';
    return code != 0x7F && !(code >= 0x80 && code < 0xA0) && code != 0x2028 && code != 0x2029 &&
           code != 0xFEFF && code != 0xFFFE && code != 0xFFFF;
}

struct str source_line(const struct conf_file *file, unsigned number)
{
    struct str line;

    if (number == 0 || number > file->line_count)
        return STR("");
    line = str_slice(file->text, file->lines[number - 1],
                     number < file->line_count ? file->lines[number] : file->text.length);
    while (line.length && (line.data[line.length - 1] == '\n' || line.data[line.length - 1] == '\r'))
        line.length--;
    return line;
}

size_t source_offset(struct source_cursor *cursor, unsigned line, unsigned column)
{
    const struct conf_file *file = cursor->file;

    if (line == 0 || line > file->line_count)
        return file->text.length;
    if (cursor->line != line || cursor->column > column)
        *cursor = (struct source_cursor){file, line, 1, file->lines[line - 1]};
    while (cursor->column < column && cursor->offset < file->text.length) {
        cursor->offset++;
        while (cursor->offset < file->text.length &&
               ((unsigned char)file->text.data[cursor->offset] & 0xC0) == 0x80)
            cursor->offset++;
        cursor->column++;
    }
    return cursor->offset;
}

/* True for "user www-data;" or "http {": a word that is not a mapping key, and ';', '{' or '}' at the end. */
static bool is_nginx_line(struct str line)
{
    ssize_t comment = str_search(line, STR(" #"));
    struct str text = str_trim(comment < 0 ? line : str_slice(line, 0, (size_t)comment));
    size_t word = 0;

    while (word < text.length && ((text.data[word] >= 'a' && text.data[word] <= 'z') || text.data[word] == '_'))
        word++;
    return word > 0 && word < text.length && (text.data[word] == ' ' || text.data[word] == '\t') &&
           str_search(text, STR(": ")) < 0 && strchr(";{}", text.data[text.length - 1]);
}

unsigned source_nginx_line(const struct conf_file *file)
{
    for (unsigned number = 1; number <= file->line_count; number++) {
        struct str line = str_trim(source_line(file, number));

        if (!str_empty(line) && line.data[0] != '#')
            return is_nginx_line(line) ? number : 0;
    }
    return 0;
}
