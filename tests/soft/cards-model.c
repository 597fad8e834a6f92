/*
 * Memory of several cards against a model: random objects, made and mapped on
 * any of three cards at few addresses, with lists of cards that are partly
 * wrong.  The model is written from kfd_chardev.c and amdgpu_amdkfd_gpuvm.c:
 * each card has its own memory and address space, a list is worked off up to
 * the first that fails, and what went before stays.
 *
 * T0_SEED repeats a run.
 */
#include <unistd.h>

#include "tests/soft/softdev.h"

#define CARDS 3u
#define OBJECTS 24u
#define SLOTS 10u
#define SLOT_BYTES (256u << 10)
#define VRAM_BYTES (2u << 20)
#define STEPS 20000u

struct object {
	uint64_t handle, va, size;
	unsigned card;
	bool vram;
	unsigned mapped; /* a bit per card */
};

static struct sd card[CARDS];
static struct object object[OBJECTS];
static uint64_t seed;
static uint8_t *slots;
static bool small_bar;
static unsigned bad, asked;

static uint32_t random_below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed * 0x2545f4914f6cdd1dull) >> 33) % n;
}

static void check_return(const char *what, int64_t got, int64_t wanted)
{
	asked++;
	if (got != wanted && bad++ < 10)
		diag("step %u: %s: got %lld, wanted %lld", asked, what,
		     (long long)got, (long long)wanted);
}

/* ---------------------------------------------------------- the model -- */

static uint64_t model_free_bytes(unsigned c)
{
	uint64_t left = VRAM_BYTES;

	for (unsigned i = 0; i < OBJECTS; i++)
		if (object[i].handle && object[i].vram && object[i].card == c)
			left -= object[i].size;
	return left;
}

static bool model_room(const struct object *o, unsigned c)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		const struct object *p = &object[i];

		if (p->handle && p != o && p->mapped >> c & 1 &&
		    p->va < o->va + o->size && o->va < p->va + p->size)
			return false;
	}
	return true;
}

/* What mapping it on this card, CARDS for one that there is not, gives. */
static int model_map(struct object *o, unsigned c)
{
	if (c == CARDS)
		return -EINVAL;
	if (o->mapped >> c & 1)
		return 0;
	if (o->vram && c != o->card && small_bar)
		return -EINVAL;
	if (!model_room(o, c))
		return -EINVAL;
	o->mapped |= 1u << c;
	return 0;
}

static int model_unmap(struct object *o, unsigned c)
{
	if (c == CARDS || !(o->mapped >> c & 1))
		return -EINVAL;
	o->mapped &= ~(1u << c);
	return 0;
}

/* ------------------------------------------------------------ the steps -- */

static void step_alloc(struct object *o)
{
	const unsigned c = random_below(CARDS);
	const uint64_t size = (1 + random_below(SLOT_BYTES / 4096)) * 4096ull;
	const bool vram = random_below(3);
	struct kfd_ioc_alloc_memory a = {
		.va_addr = sd_ptr(slots) + random_below(SLOTS) * SLOT_BYTES,
		.size = size, .gpu_id = card[c].gpu,
		.flags = vram ? VRAM_FLAGS & ~(small_bar ? KFD_MEM_PUBLIC : 0) :
				GTT_FLAGS,
	};
	const int ret = sd_ioctl(&card[c], KFD_IOC_ALLOC_MEMORY_OF_GPU, &a);

	check_return("ALLOC", ret,
		     vram && size > model_free_bytes(c) ? -ENOMEM : 0);
	if (!ret)
		*o = (struct object){ a.handle, a.va_addr, size, c, vram, 0 };
}

static void step_map(struct object *o, bool map)
{
	uint32_t ids[4], n = 1 + random_below(4), done = 0;
	struct kfd_ioc_map_memory a = { o->handle, sd_ptr(ids), n, 0 };
	int ret = 0;

	for (uint32_t i = 0; i < n; i++) {
		const unsigned c = random_below(12) ? random_below(CARDS) :
						      CARDS;

		ids[i] = c == CARDS ? 12345 : card[c].gpu;
		if (!ret)
			ret = map ? model_map(o, c) : model_unmap(o, c);
		done += !ret;
	}
	check_return(map ? "MAP" : "UNMAP",
		     sd_ioctl(&card[0],
			      map ? KFD_IOC_MAP_MEMORY_TO_GPU :
				    KFD_IOC_UNMAP_MEMORY_FROM_GPU,
			      &a),
		     ret);
	check_return("n_success", a.n_success, done);
}

static void step_free(struct object *o)
{
	const unsigned other = (o->card + 1) % CARDS;
	const uint64_t index = o->handle & 0xffffffff;

	check_return("FREE by another card's handle",
		     sd_free_handle(&card[0],
				    (uint64_t)card[other].gpu << 32 | index),
		     -EINVAL);
	check_return("FREE", sd_free_handle(&card[0], o->handle),
		     o->mapped ? -EBUSY : 0);
	if (!o->mapped)
		o->handle = 0;
}

static void check_available(void)
{
	for (unsigned c = 0; c < CARDS; c++) {
		struct kfd_ioc_available_memory a = { .gpu_id = card[c].gpu };

		sd_ioctl(&card[c], KFD_IOC_AVAILABLE_MEMORY, &a);
		check_return("AVAILABLE_MEMORY", (int64_t)a.available,
			     (int64_t)model_free_bytes(c));
	}
}

static void test_model(bool small)
{
	const struct soft_options o = { .cards = CARDS, .threads = 1,
					.small_bar = small,
					.vram_bytes = VRAM_BYTES };

	small_bar = small;
	bad = asked = 0;
	memset(object, 0, sizeof(object));
	card[0] = sd_open(&o);
	for (unsigned c = 1; c < CARDS; c++)
		card[c] = sd_card(&card[0], c);
	slots = sd_reserve((SLOTS + 1) * SLOT_BYTES);
	for (unsigned i = 0; i < STEPS; i++) {
		struct object *p = &object[random_below(OBJECTS)];

		if (!p->handle)
			step_alloc(p);
		else if (random_below(4))
			step_map(p, random_below(2));
		else
			step_free(p);
		if (i % 16 == 0)
			check_available();
	}
	is_u64(bad, 0, "%s BAR: %u answers as the model has them",
	       small ? "small" : "large", asked);
	sd_close(&card[0]);
	munmap(slots, (SLOTS + 1) * SLOT_BYTES);
}

int main(void)
{
	const char *s = getenv("T0_SEED");

	seed = s ? strtoull(s, NULL, 0) : time_mono_ns() | 1;
	diag("T0_SEED=%llu", (unsigned long long)seed);
	test_model(false);
	test_model(true);
	return plan_done();
}
