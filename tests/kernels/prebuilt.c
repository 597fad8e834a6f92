/*
 * Prebuilt objects and the cache: what is in the pack is what the compiler
 * makes; keys tell everything apart; entries that are damaged, folders that
 * cannot be written, full disks, and many at once.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compiler/cost/cost.h"
#include "compiler/gemm/gemm.h"
#include "compiler/kernels/kernels.h"
#include "tests/tap.h"

static char folder[] = "/tmp/t0-pack-XXXXXX";

/* What the cache said, and how often. */
struct heard {
	int times;
	char text[1400];
};

static void hear(void *ctx, const char *text)
{
	struct heard *h = ctx;

	h->times++;
	snprintf(h->text, sizeof(h->text), "%s", text);
}

static bool fetch(struct object_cache *j, const char *name,
		  const struct kernel_shape *s, const struct cc_options *o,
		  struct cache_object *out)
{
	struct err e = { 0 };

	if (kernel_object(j, kernel_find(name), s, o, out, &e))
		return true;
	diag("%s: %s", name, e.msg);
	return false;
}

static bool compiled(const char *name, struct kernel_shape s, struct buf *out)
{
	const struct kernel_entry *k = kernel_find(name);
	struct cc_object obj = { 0 };
	struct cc_options o;
	struct err e = { 0 };
	struct ssa_func *f;
	bool good;

	cc_options_init(&o);
	kernel_shape_check(k, &s, &e);
	f = kernel_build(k, &s, &e);
	good = f && cc_compile(f, &o, &obj, &e);
	ssa_func_free(f);
	*out = obj.bytes;
	return good;
}

static bool same(const struct cache_object *a, const struct buf *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->data, b->len);
}

/* --------------------------------------------------------------- pack ---- */

static void test_pack(void)
{
	const struct prebuilt p = prebuilt_embedded();
	struct err e = { 0 };
	uint32_t shapes = 0, missing = 0, differ = 0;
	struct object_cache j;

	ok(prebuilt_check(&p, &e), "the pack is sound: %s", e.msg);
	setenv("T0_CACHE", "", 1);
	object_cache_init(&j, NULL, NULL);
	for (size_t k = 0; k < kernel_count; k++) {
		const struct kernel_entry *entry = &kernel_table[k];
		struct kernel_shape s;

		for (uint32_t i = 0; kernel_usual(entry, i, &s); i++) {
			struct cache_object obj = { 0 };
			struct buf want = { 0 };
			bool good = fetch(&j, entry->name, &s, NULL, &obj);

			shapes++;
			missing += !good || obj.from != OBJECT_PREBUILT;
			if (!i && good && compiled(entry->name, s, &want))
				differ += !same(&obj, &want);
			cache_object_fini(&obj);
			buf_fini(&want);
		}
	}
	is_u64(prebuilt_count(&p), shapes, "it holds every usual shape");
	is_u64(missing, 0, "and gives each without compiling");
	is_u64(differ, 0, "what it gives is what the compiler makes");
	diag("%u objects, %zu bytes", shapes, p.size_bytes);
	object_cache_fini(&j);
}

static void test_damaged_pack(void)
{
	struct prebuilt_writer w = { 0 };
	struct buf b = { 0 };
	struct err e = { 0 };
	size_t len = 0;

	prebuilt_add(&w, (struct object_key){ 9, 1 }, "large", 6);
	prebuilt_add(&w, (struct object_key){ 2, 8 }, "other", 6);
	prebuilt_add(&w, (struct object_key){ 2, 7 }, "large", 6);
	ok(prebuilt_write(&w, &b, &e), "a pack is written");
	prebuilt_writer_fini(&w);
	const struct prebuilt p = { (uint8_t *)b.data, b.len };
	const uint8_t *x = prebuilt_find(&p, (struct object_key){ 2, 7 }, &len);
	ok(x && len == 6 && !memcmp(x, "large", 6), "and read");
	ok(x == prebuilt_find(&p, (struct object_key){ 9, 1 }, &len),
	   "equal objects are there once");
	ok(!prebuilt_find(&p, (struct object_key){ 2, 9 }, &len),
	   "others are not");
	ok(prebuilt_check(&p, &e), "it is sound");
	ok(!prebuilt_check(&(struct prebuilt){ p.data, p.size_bytes - 16 }, &e),
	   "cut short it is not");
	b.data[32]++; /* a key: out of order */
	b.data[39]++;
	ok(!prebuilt_check(&p, &e), "nor in another order");
	b.data[0] = 'X';
	ok(!prebuilt_check(&p, &e), "nor with another magic");
	buf_fini(&b);
	prebuilt_add(&w, (struct object_key){ 1, 1 }, "a", 2);
	prebuilt_add(&w, (struct object_key){ 1, 1 }, "b", 2);
	ok(!prebuilt_write(&w, &b, &e), "one key twice is refused");
	prebuilt_writer_fini(&w);
	buf_fini(&b);
}

/* --------------------------------------------------------------- keys ---- */

static void test_keys(void)
{
	enum { KEYS = 10 };
	struct object_key key[KEYS];
	struct cost_model costs, other;
	struct cc_options o[KEYS];
	struct err e = { 0 };
	int equal = 0;

	cost_init(&costs, "gfx1100");
	cost_init(&other, "gfx1100");
	cost_set(&other, "valu.latency", 77, COST_HARDWARE, &e);
	for (int i = 0; i < KEYS; i++)
		cc_options_init(&o[i]);
	o[1].chip = "gfx1101";
	o[2].level = 2;
	o[3].max_vgprs = 96;
	o[4].waves = 8;
	o[5].wgp = true;
	o[6].costs = &other;
	o[7].no_verify = true;
	for (int i = 0; i < KEYS; i++)
		key[i] = object_key_hash(i == 8 ? "softmax group=64" :
					 i == 9 ? "softmax group=6" :
						  "softmax",
					 &o[i]);
	for (int i = 0; i < KEYS; i++)
		for (int k = 0; k < i; k++)
			equal += key[i].hi == key[k].hi &&
				 key[i].lo == key[k].lo;
	is_u64((uint64_t)equal, 0, "everything that matters is in the key");
	o[0].costs = &costs;
	struct object_key again = object_key_hash("softmax", &o[0]);
	ok(again.hi == key[0].hi && again.lo == key[0].lo,
	   "costs of the same values are the same");
	cost_fini(&costs);
	cost_fini(&other);
}

static void test_describe(void)
{
	struct kernel_shape s = { .type = DSL_BF16, .head = 64, .ratio = 3 };
	struct buf b = { 0 };

	kernel_describe(kernel_find("attn_split"), &s, &b);
	is_str(b.data, "attn_split type=bf16 cache=bf16 head=64 ratio=3 "
		       "group=128", "a shape is described");
	buf_reset(&b);
	kernel_describe(kernel_find("relu"), &s, &b);
	is_str(b.data, "relu type=bf16 group=256",
	       "without what the kernel does not depend on");
	buf_fini(&b);
}

/* -------------------------------------------------------------- cache ---- */

static const struct kernel_shape unusual = { .type = DSL_F32, .group = 64 };

/* Files of a tree; their last path, too. */
static int files_in(const char *path, char *last)
{
	DIR *d = opendir(path);
	int n = 0;

	for (struct dirent *f; d && (f = readdir(d));) {
		char at[600];
		struct stat st;
		if (f->d_name[0] == '.')
			continue;
		snprintf(at, sizeof(at), "%.300s/%.255s", path, f->d_name);
		if (stat(at, &st))
			continue;
		if (S_ISDIR(st.st_mode)) {
			n += files_in(at, last);
		} else {
			n++;
			if (last)
				memcpy(last, at, sizeof(at));
		}
	}
	if (d)
		closedir(d);
	return n;
}

static char *use_folder(const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	setenv("T0_CACHE", path, 1);
	return path;
}

static void test_cache(void)
{
	char *path = use_folder("a/deep/one");
	struct heard h = { 0 };
	struct cache_object a, b, c;
	struct cc_options o;
	struct object_cache j;

	object_cache_init(&j, hear, &h);
	if (!ok(fetch(&j, "softmax", &unusual, NULL, &a) &&
		fetch(&j, "softmax", &unusual, NULL, &b), "a shape that is "
		"not usual"))
		return;
	ok(a.from == OBJECT_COMPILED && b.from == OBJECT_CACHED,
	   "is compiled, then found (%s, %s)", object_from_name(a.from),
	   object_from_name(b.from));
	ok(a.len == b.len && !memcmp(a.bytes, b.bytes, a.len), "the same");
	cc_options_init(&o);
	o.level = 1;
	ok(fetch(&j, "softmax", &unusual, &o, &c) && c.from == OBJECT_COMPILED,
	   "other options are another object");
	is_u64((uint64_t)files_in(path, NULL), 2, "two files are there");
	is_u64((uint64_t)h.times, 0, "nothing was said");
	cache_object_fini(&a);
	cache_object_fini(&b);
	cache_object_fini(&c);
	object_cache_fini(&j);
}

static void put(const char *path, const char *data, size_t len)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(data, 1, len, f) != len || fclose(f))
		diag("%s: %s", path, strerror(errno));
}

/* Damage `how`; whether it was noticed, and the entry made good. */
static bool heals(struct object_cache *j, const char *path,
		  const struct buf *good, int how)
{
	struct buf bad = { 0 }, now = { 0 };
	struct cache_object obj;
	struct err e = { 0 };
	bool well;

	buf_add(&bad, good->data, good->len);
	if (how < 6)
		bad.data[(size_t)how * 11] ^= 4; /* the header */
	else if (how == 6)
		bad.data[bad.len - 1] ^= 1;
	else if (how == 7)
		bad.len /= 2;
	else if (how == 8)
		bad.len = 0;
	else
		buf_addc(&bad, 1);
	put(path, bad.data, bad.len);
	well = fetch(j, "softmax", &unusual, NULL, &obj) &&
	       obj.from == OBJECT_COMPILED && file_read(path, 0, &now, &e) &&
	       now.len == good->len && !memcmp(now.data, good->data, now.len);
	cache_object_fini(&obj);
	buf_fini(&bad);
	buf_fini(&now);
	return well;
}

static void test_damage(void)
{
	const char *path = use_folder("damage");
	struct buf good = { 0 };
	struct cache_object obj;
	struct err e = { 0 };
	char file[600] = "";
	struct object_cache j;
	int bad = 0;

	object_cache_init(&j, NULL, NULL);
	fetch(&j, "softmax", &unusual, NULL, &obj);
	cache_object_fini(&obj);
	is_u64((uint64_t)files_in(path, file), 1, "one entry");
	ok(file_read(file, 0, &good, &e), "is read");
	for (int how = 0; how < 10; how++)
		if (!heals(&j, file, &good, how)) {
			diag("damage %d", how);
			bad++;
		}
	is_u64((uint64_t)bad, 0, "damaged in ten ways it is made anew");
	buf_fini(&good);
	object_cache_fini(&j);
}

/* Files of at most `most` bytes are as a disk that is full. */
static void limit_files(rlim_t most)
{
	struct rlimit r;

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = most;
	setrlimit(RLIMIT_FSIZE, &r);
}

/* Objects come all the same, and one complaint. */
static void works_without(const char *why, rlim_t most, const char *word)
{
	struct heard h = { 0 };
	struct cache_object obj;
	struct object_cache j;
	int good = 0;

	object_cache_init(&j, hear, &h);
	limit_files(most);
	for (int i = 0; i < 3; i++) {
		good += fetch(&j, "softmax", &unusual, NULL, &obj) &&
			obj.from == OBJECT_COMPILED;
		cache_object_fini(&obj);
	}
	limit_files(RLIM_INFINITY);
	object_cache_fini(&j);
	is_u64((uint64_t)good, 3, "%s: kernels are compiled", why);
	is_u64((uint64_t)h.times, 1, "%s: said once", why);
	ok(strstr(h.text, word) && strstr(h.text, "T0_CACHE"),
	   "and what, and the remedy: %s", h.text);
}

static void test_unwritable(void)
{
	char file[100];

	snprintf(file, sizeof(file), "%s/file", folder);
	put(file, "x", 1);
	use_folder("file/below");
	works_without("a folder that cannot be", RLIM_INFINITY,
		      "Not a directory");
	signal(SIGXFSZ, SIG_IGN);
	const char *path = use_folder("full");
	works_without("no room", 100, "File too large");
	is_u64((uint64_t)files_in(path, NULL), 0, "nothing half is left");
}

/* A folder of `name`, with an entry, last used so many days ago. */
static void make_build(const char *root, const char *name, int days)
{
	struct timespec t[2] = { { .tv_sec = time(NULL) - days * 86400l } };
	char path[400];

	t[1] = t[0];
	mkdir(root, 0777);
	snprintf(path, sizeof(path), "%s/%s", root, name);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/%s/entry.co", root, name);
	put(path, "x", 1);
	snprintf(path, sizeof(path), "%s/%s", root, name);
	utimensat(AT_FDCWD, path, t, 0);
}

static bool is_there(const char *root, const char *name)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s/entry.co", root, name);
	return access(path, F_OK) == 0;
}

static void test_old(void)
{
	static const char old[] = "0123456789abcdef0123456789abcdef";
	static const char young[] = "00000000000000000000000000000000";
	const char *root = use_folder("old");
	struct cache_object obj;
	struct object_cache j;

	make_build(root, old, 31);
	make_build(root, young, 29);
	make_build(root, "photographs", 100);
	object_cache_init(&j, NULL, NULL);
	fetch(&j, "softmax", &unusual, NULL, &obj);
	cache_object_fini(&obj);
	object_cache_fini(&j);
	ok(!is_there(root, old), "a build that was not used for a month goes");
	ok(is_there(root, young), "a younger one stays");
	ok(is_there(root, "photographs"), "and what is no build");
}

/* ----------------------------------------------------------- products ---- */

static bool same_code(const struct gemm_code *a, const struct gemm_code *b)
{
	bool same = a->n == b->n;

	for (int i = 0; same && i < a->n; i++) {
		const struct buf *x = &a->object[i].bytes;
		const struct buf *y = &b->object[i].bytes;
		same = x->len == y->len && !memcmp(x->data, y->data, x->len);
	}
	return same;
}

static void test_product(const char *op_name, const char *config, int parts)
{
	struct gemm_code want, got;
	struct gemm_config c;
	struct gemm_op op;
	struct err e = { 0 };
	struct object_cache j;

	ok(gemm_op_parse(op_name, &op, &e) &&
	   gemm_config_parse(config, &c, &e) &&
	   gemm_compile(&op, &c, NULL, &want, &e), "%s %s: %s", op_name,
	   config, e.msg);
	is_i64(want.n, parts, "so many objects");
	for (int turn = 0; turn < 2; turn++) {
		object_cache_init(&j, NULL, NULL);
		ok(gemm_object(&j, &op, &c, NULL, &got, &e) &&
		   same_code(&got, &want), "it comes through the cache");
		is_u64(j.compiled, turn ? 0 : (uint64_t)parts,
		       turn ? "the second time from it" : "and is compiled");
		gemm_code_fini(&got);
		object_cache_fini(&j);
	}
	gemm_code_fini(&want);
}

/* Neither of these is the other's, nor is one's part. */
static void test_products(void)
{
	const char *path = use_folder("products");
	static const char config[] = "16x32x64_w1x2_b2_p1_u1_g0_pad_wgp";

	test_product("bf16_nt_f32", config, 1);
	test_product("bf16_nt_f32+beta", config, 1);
	test_product("bf16_nt_f32", "16x32x64_w1x2_b2_p1_u1_g0_pad_wgp_split2",
		     2);
	test_product("bf16_nt_f32", "16x32x64_w1x2_b2_p1_u1_g0_pad_cu", 1);
	is_u64((uint64_t)files_in(path, NULL), 5, "an entry for each");
}

/* ------------------------------------------------------------ at once ---- */

enum { AT_ONCE = 6, GROUPS = 3 };

static bool all_right(struct object_cache *j, const struct buf *want)
{
	bool good = true;

	for (uint32_t g = 0; g < GROUPS; g++) {
		struct kernel_shape s = { .group = 32u << g,
					  .type = DSL_F32 };
		struct cache_object obj;

		good &= fetch(j, "row_sum", &s, NULL, &obj) &&
			same(&obj, &want[g]);
		cache_object_fini(&obj);
	}
	return good;
}

struct thread {
	struct object_cache *j;
	const struct buf *want;
	bool good;
};

static void *run(void *arg)
{
	struct thread *t = arg;

	t->good = all_right(t->j, t->want);
	return NULL;
}

static void test_threads(const struct buf *want)
{
	struct thread t[AT_ONCE];
	pthread_t id[AT_ONCE];
	struct object_cache j;
	int good = 0;

	use_folder("threads");
	object_cache_init(&j, NULL, NULL);
	for (int i = 0; i < AT_ONCE; i++) {
		t[i] = (struct thread){ &j, want, false };
		pthread_create(&id[i], NULL, run, &t[i]);
	}
	for (int i = 0; i < AT_ONCE; i++) {
		pthread_join(id[i], NULL);
		good += t[i].good;
	}
	object_cache_fini(&j);
	is_u64((uint64_t)good, AT_ONCE, "threads share a cache");
}

static void test_processes(const struct buf *want)
{
	const char *path = use_folder("processes");
	int good = 0, status;

	fflush(stdout);
	for (int i = 0; i < AT_ONCE; i++)
		if (!fork()) {
			struct object_cache j;
			object_cache_init(&j, NULL, NULL);
			_exit(!(all_right(&j, want) && all_right(&j, want)));
		}
	while (wait(&status) > 0)
		good += WIFEXITED(status) && !WEXITSTATUS(status);
	is_u64((uint64_t)good, AT_ONCE, "processes share a cache");
	/* One of the three shapes is in the pack: groups of 128. */
	is_u64((uint64_t)files_in(path, NULL), GROUPS - 1,
	       "and leave an entry for each shape, nothing else");
}

static void test_at_once(void)
{
	struct buf want[GROUPS];

	for (uint32_t g = 0; g < GROUPS; g++)
		compiled("row_sum", (struct kernel_shape){ .group = 32u << g,
			 .type = DSL_F32 }, &want[g]);
	test_threads(want);
	test_processes(want);
	for (uint32_t g = 0; g < GROUPS; g++)
		buf_fini(&want[g]);
}

static void test_folders(void)
{
	static const struct {
		const char *own, *xdg, *home, *want;
	} t[] = {
		{ "/o", "/x", "/h", "/o/" },
		{ NULL, "/x", "/h", "/x/t0/" },
		{ NULL, "", "/h", "/h/.cache/t0/" },
		{ NULL, "relative", "/h", "/h/.cache/t0/" },
		{ NULL, NULL, NULL, NULL },
		{ "", "/x", "/h", NULL },
	};
	int bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const char *v[] = { t[i].own, t[i].xdg, t[i].home };
		static const char *const name[] = { "T0_CACHE",
			"XDG_CACHE_HOME", "HOME" };
		struct object_cache j;
		for (int n = 0; n < 3; n++)
			if (v[n])
				setenv(name[n], v[n], 1);
			else
				unsetenv(name[n]);
		object_cache_init(&j, NULL, NULL);
		bad += t[i].want ? !j.folder || strncmp(j.folder, t[i].want,
							strlen(t[i].want)) :
				   j.folder != NULL;
		object_cache_fini(&j);
	}
	is_u64((uint64_t)bad, 0, "the folder is where the variables say");
}

int main(void)
{
	char command[100];

	if (!mkdtemp(folder))
		return 1;
	test_pack();
	test_damaged_pack();
	test_keys();
	test_describe();
	test_cache();
	test_damage();
	test_unwritable();
	test_old();
	test_products();
	test_at_once();
	test_folders();
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		diag("%s stays", folder);
	return plan_done();
}
