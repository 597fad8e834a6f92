/*
 * said - the lines that a device's threads have reported, for the test's.
 */
#ifndef T0_TESTS_SOFT_SAID_H
#define T0_TESTS_SOFT_SAID_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said_lines[16384];

/* For soft_options.report. */
static inline void said_keep(const char *line)
{
	pthread_mutex_lock(&said_lock);
	const size_t n = strlen(said_lines);
	snprintf(said_lines + n, sizeof(said_lines) - n, "%s\n", line);
	pthread_mutex_unlock(&said_lock);
}

static inline void said_forget(void)
{
	pthread_mutex_lock(&said_lock);
	said_lines[0] = '\0';
	pthread_mutex_unlock(&said_lock);
}

/* All lines; the caller frees it. */
static inline char *said_copy(void)
{
	pthread_mutex_lock(&said_lock);
	char *copy = strdup(said_lines);
	pthread_mutex_unlock(&said_lock);
	return copy;
}

static inline bool said(const char *text)
{
	pthread_mutex_lock(&said_lock);
	const bool found = strstr(said_lines, text);
	pthread_mutex_unlock(&said_lock);
	return found;
}

static inline bool said_nothing(void)
{
	pthread_mutex_lock(&said_lock);
	const bool nothing = !said_lines[0];
	pthread_mutex_unlock(&said_lock);
	return nothing;
}

#endif
