/*
 * HTML pages that the server generates: error pages, directory listings, the status page. They share one style, for
 * light and dark screens and for narrow ones, and load no other resource.
 */
#ifndef SERVER_PAGE_PAGE_H
#define SERVER_PAGE_PAGE_H

#include "base/str.h"

/* Start of a page, up to and including the style; the title follows. */
extern const struct str page_start;
/*
 * Value of Content-Security-Policy (CSP Level 3) that permits only the style of page_start. It replaces the policy of
 * the site, because a strict one would disable the style.
 */
extern const struct str page_policy;

/*
 * A script element. It shows the page's <input> with its <label>, and hides the rows of the last <tbody> whose first
 * cell does not contain the text of the <input>. A page with it needs page_filter_policy.
 */
extern const struct str page_filter_script, page_filter_policy;

#endif
