/*
 * Checkpoints of training from anywhere, for the smallest model.  What is
 * accepted is written again as the same bytes.  The first byte of the input is
 * not of the file: an odd one wants a right checksum put behind the rest.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/train/train.h"
#include "tests/attack/driver/driver.h"

static const char about[] = "layers 1\nrate 0.5\n";
static struct train_graph graph;
static struct train *run;

static void make_run(void)
{
	static const struct qwen_config config = {
		.layers = 1, .hidden = 4, .heads = 1, .kv_heads = 1,
		.head_dim = 2, .ffn = 4, .vocab = 4, .max_positions = 2,
		.rope_theta = 1e4, .norm_eps = 1e-6, .tied = true,
	};
	static const struct train_how how = {
		.rows = 1, .length = 2, .type = QWEN_W_F32,
		.method = TRAIN_SGD,
	};
	struct err e = { 0 };
	struct threads *t = threads_new(1, &e);

	if (!t || !train_qwen3(&graph, &config, &how, &e) ||
	    !(run = train_new(&graph, t, NULL, &e)))
		BUG("%s", e.msg);
}

static void same_again(const struct buf *file, const struct train_place *p)
{
	struct buf again = { 0 };
	struct err e = { 0 };
	char path[128];

	snprintf(path, sizeof(path), "%s/again", work_folder());
	if (!train_checkpoint_write(run, path, about, p, &e) ||
	    !file_read(path, 0, &again, &e))
		BUG("%s", e.msg);
	if (again.len != file->len ||
	    memcmp(again.data, file->data, file->len) != 0)
		BUG("accepted, and written again as another file");
	buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file = { 0 };
	struct train_place p;
	struct err e = { 0 };

	if (!run)
		make_run();
	if (!size)
		return 0;
	buf_add(&file, data + 1, size - 1);
	if (data[0] & 1) {
		uint64_t sum = XXH64(data + 1, size - 1, 0);
		buf_add(&file, &sum, sizeof(sum));
	}
	const char *path = input_file((const uint8_t *)file.data, file.len,
				      NULL);
	if (train_checkpoint_read(run, path, about, &p, &e))
		same_again(&file, &p);
	else if (!e.msg[0])
		BUG("refused without a reason");
	buf_fini(&file);
	return 0;
}
