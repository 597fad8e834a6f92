/* base/vec.h: growing arrays. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "tests/tap.h"

struct edge {
	uint32_t from, to;
	double weight;
};

static void test_push(void)
{
	VEC(int) v = { 0 };
	bool kept = true;

	for (int i = 0; i < 100000; i++)
		vec_push(&v, 3 * i + 1);
	is_u64(v.n, 100000, "as many elements as were pushed");
	for (int i = 0; i < 100000; i++)
		kept = kept && v.v[i] == 3 * i + 1;
	ok(kept, "each is where it was pushed");
	ok(v.cap >= v.n && v.cap < 2 * 100000 + 16,
	   "the capacity is at most twice the count (%zu)", v.cap);
	v.n = 1;
	for (int i = 1; i < 1000; i++)
		vec_push(&v, v.v[i - 1] + 1);
	is_u64((uint64_t)v.v[999], 1000, "a value may come from the vector");
	vec_fini(&v);
	ok(!v.v && !v.n && !v.cap, "vec_fini empties");
	vec_push(&v, 7);
	ok(v.n == 1 && v.v[0] == 7, "a finished vector may be used again");
	vec_fini(&v);
	vec_fini(&v);
}

static void test_structs(void)
{
	struct {
		int n, cap;
		struct edge *v;
	} own = { 0 };

	vec_push(&own, (struct edge){ .from = 1, .to = 2, .weight = 0.5 });
	struct edge *e = vec_add(&own);
	ok(own.n == 2 && e == &own.v[1], "vec_add gives the element's address");
	ok(!e->from && !e->to && e->weight == 0, "and it is zero");
	for (int i = 0; i < 5000; i++) {
		memset(vec_add(&own), 0xff, sizeof(*own.v));
		own.n--;
		vec_add(&own)->to = (uint32_t)i;
	}
	ok(own.n == 5002 && own.v[5001].to == 4999 && !own.v[5001].from,
	   "memory that was used before is zeroed, too");
	ok(own.v[0].to == 2 && own.v[0].weight == 0.5,
	   "growing keeps the first element");
	vec_fini(&own);
}

static void test_reserve(void)
{
	VEC(uint64_t) v = { 0 };
	int calls = 0;

	vec_reserve(&v, calls);
	ok(!v.v && !v.cap, "room for nothing takes no memory");
	vec_push(&v, 42);
	vec_reserve(&v, 1000);
	uint64_t *at = v.v;
	for (uint64_t i = 0; i < 1000; i++)
		vec_push(&v, i);
	ok(v.v == at, "what was reserved is added without moving");
	ok(v.v[0] == 42 && v.v[1000] == 999, "behind what was there");
	vec_push((calls++, &v), 1);
	vec_add((calls++, &v));
	vec_reserve((calls++, &v), 5);
	is_u64((uint64_t)calls, 3, "the vector is evaluated once");
	is_u64(v.n, 1003, "and each adds one");
	vec_fini((calls++, &v));
	is_u64((uint64_t)calls, 4, "to be freed, too");
}

static void test_separate(void)
{
	uint16_t *section = NULL;
	uint32_t n_sections = 0, cap_sections = 0;

	for (; n_sections < 3000; n_sections++) {
		VEC_GROW(section, n_sections, 1, cap_sections);
		section[n_sections] = (uint16_t)n_sections;
	}
	ok(cap_sections >= 3000 && section[2999] == 2999 && section[1] == 1,
	   "an array, a count and a capacity of any names grow");
	free(section);
	section = NULL;
	cap_sections = 0;
	VEC_GROW(section, 1, 1, cap_sections);
	ok(section && cap_sections >= 2, "the first may be nobody's");
	free(section);
}

/* How a child that runs `f` ends, 0: it returned. */
static int exit_of(void (*f)(void))
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		close(STDERR_FILENO);
		f();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static volatile size_t huge;

static void add_too_many(void)
{
	VEC(char) v = { 0 };

	vec_push(&v, 'x');
	vec_reserve(&v, huge);
}

static void take_too_much(void)
{
	VEC(struct edge) v = { 0 };

	vec_reserve(&v, huge);
}

static void count_too_far(void)
{
	struct {
		char *v;
		int16_t n, cap;
	} v = { 0 };

	for (size_t i = 0; i < huge; i++)
		vec_push(&v, 'x');
}

static void test_overflow(void)
{
	huge = SIZE_MAX;
	is_u64((uint64_t)exit_of(add_too_many), 2,
	       "a count that overflows exits 2");
	huge = SIZE_MAX / 16 + 1;
	is_u64((uint64_t)exit_of(take_too_much), 2,
	       "and elements of more bytes than 2^64 do");
	huge = 32767;
	is_u64((uint64_t)exit_of(count_too_far), 0,
	       "a count of 16 bits reaches 32767");
	huge = 32768;
	is_u64((uint64_t)exit_of(count_too_far), 2, "and ends there");
}

int main(void)
{
	test_push();
	test_structs();
	test_reserve();
	test_separate();
	test_overflow();
	return plan_done();
}
