/*
 * browser - a real browser as a test's child: chromium without a window, told
 * by its debugging protocol (JSON with a NUL behind it, over two pipes) to
 * look, type and click as a user would.  There is one at a time, with one tab.
 *
 * T0_SHOTS=FOLDER keeps pictures of what it shows.
 */
#ifndef T0_TESTS_REF_BROWSER_H
#define T0_TESTS_REF_BROWSER_H

#include "base/base.h"

/* Skips all of the test, loudly, where no browser is installed. */
void browser_require(void);
/* Its profile and log go to the folder; it dies with the test. */
bool browser_start(const char *folder);
void browser_end(void);

/* Pages whose address does not begin like this are foreign. */
void browser_home(const char *address);
/* Requests for what is foreign, and errors on the console, since the start. */
unsigned browser_n_foreign(void);
unsigned browser_n_errors(void);
/* The first of these; valid until the end. */
const char *browser_first_error(void);

void browser_visit(const char *address);
/* As a telephone shows it where `phone`; dark where `dark`. */
void browser_look(int width, int height, bool phone, bool dark);
/* The value of an expression as text; valid until the next call. */
const char *browser_eval(const char *expression);
/* Until an expression is true; false after half a minute. */
bool browser_wait(const char *expression);
void browser_press(const char *key, int code); /* a code of Windows */
void browser_type(const char *text);
/* With the mouse, in the middle of what a selector finds. */
void browser_click(const char *selector);
/* A picture of what is in view, or of the whole page. */
void browser_shot(const char *name, bool whole);
/*
 * What the browser tells those who cannot see: the number of links, buttons,
 * fields and regions without a name; the first of them in `first`.
 */
unsigned browser_n_nameless(char first[128]);

/* ---------------------------------------------------- browser_audit.c ---- */

/*
 * Holds the page that is shown against what audit.js knows of accessibility;
 * with `keys`, goes through all of it by Tab, too.
 */
void browser_audit(const char *name, bool keys);
/* The same of a page of a folder: wide and as on a telephone, light and dark.
 * What is beside it is its own. */
void browser_looks(const char *name, const char *folder, const char *page);

#endif
