/*
 * kfd/soft/device/pool.c - helper threads for dispatches; dev.h says how they
 * are shared.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

struct soft_pool {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a job was offered, or stop */
	pthread_cond_t left; /* a helper left a job */
	struct soft_job *jobs;
	bool stop;
	unsigned n;
	pthread_t thread[];
};

void soft_worker_fini(struct soft_worker *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(w->code); i++)
		if (w->code[i].cache)
			soft_code_cache_free(w->code[i].cache);
	memset(w, 0, sizeof(*w));
}

/* The first offered job, moved to the end so that all get help. */
static struct soft_job *pick_job(struct soft_pool *p)
{
	struct soft_job **at = &p->jobs, **end, *j;

	while (*at && !(*at)->offered)
		at = &(*at)->next;
	j = *at;
	if (!j || !j->next)
		return j;
	*at = j->next;
	for (end = at; *end; end = &(*end)->next)
		;
	*end = j;
	j->next = NULL;
	return j;
}

static void *helper_main(void *arg)
{
	struct soft_pool *p = arg;
	struct soft_worker w = { 0 };

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		struct soft_job *j = pick_job(p);
		bool more;

		if (!j) {
			pthread_cond_wait(&p->work, &p->lock);
			continue;
		}
		j->helpers++;
		pthread_mutex_unlock(&p->lock);
		more = j->turn(j->arg, &w);
		pthread_mutex_lock(&p->lock);
		j->offered &= more;
		if (!--j->helpers)
			pthread_cond_broadcast(&p->left);
	}
	pthread_mutex_unlock(&p->lock);
	soft_worker_fini(&w);
	return NULL;
}

struct soft_pool *soft_pool_new(unsigned helpers)
{
	struct soft_pool *p =
		xcalloc(1, sizeof(*p) + helpers * sizeof(p->thread[0]));

	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->left, NULL);
	while (p->n < helpers) {
		if (soft_thread(&p->thread[p->n], helper_main, p)) {
			soft_pool_free(p);
			return NULL;
		}
		p->n++;
	}
	return p;
}

void soft_pool_free(struct soft_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->n; i++)
		pthread_join(p->thread[i], NULL);
	pthread_cond_destroy(&p->left);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void soft_pool_add(struct soft_pool *p, struct soft_job *j)
{
	pthread_mutex_lock(&p->lock);
	j->next = p->jobs;
	p->jobs = j;
	j->offered = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
}

void soft_pool_offer(struct soft_pool *p, struct soft_job *j)
{
	pthread_mutex_lock(&p->lock);
	if (!j->offered) {
		j->offered = true;
		pthread_cond_signal(&p->work);
	}
	pthread_mutex_unlock(&p->lock);
}

void soft_pool_remove(struct soft_pool *p, struct soft_job *j)
{
	struct soft_job **at;

	pthread_mutex_lock(&p->lock);
	j->offered = false;
	while (j->helpers)
		pthread_cond_wait(&p->left, &p->lock);
	for (at = &p->jobs; *at != j; at = &(*at)->next)
		;
	*at = j->next;
	pthread_mutex_unlock(&p->lock);
}
