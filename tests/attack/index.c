/*
 * Fuzz target: the index of a model in several files.  It may name the files
 * beside it, of which there are two, and no others.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/files/files.h"
#include "tests/attack/driver/driver.h"

static void write_file(const char *name, const void *data, size_t size)
{
	char path[128];
	struct err e = { 0 };

	snprintf(path, sizeof(path), "%s/%s", work_folder(), name);
	if (!file_write_unsynced(path, data, size, &e))
		BUG("%s", e.msg);
}

static void write_shard(const char *name, const char *header)
{
	char file[512] = { 0 };
	uint64_t n = strlen(header);

	memcpy(file, &n, sizeof(n));
	memcpy(file + sizeof(n), header, n);
	write_file(name, file, sizeof(n) + n + 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool written;
	struct qwen_tensors t;
	struct err e = { 0 };

	if (size > 4096)
		return 0;
	if (!written) {
		write_shard("one.safetensors",
			    "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],"
			    "\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\","
			    "\"shape\":[1],\"data_offsets\":[4,8]}}");
		write_shard("two.safetensors",
			    "{\"c\":{\"dtype\":\"F32\",\"shape\":[2],"
			    "\"data_offsets\":[0,8]}}");
		written = true;
	}
	write_file("model.safetensors.index.json", data, size);
	if (qwen_tensors_open(&t, work_folder(), &e)) {
		for (size_t i = 0; i < t.n_tensors; i++)
			if (qwen_tensor_find(&t, t.tensor[i].name) !=
			    &t.tensor[i])
				BUG("tensor %zu is not found", i);
		qwen_tensors_close(&t);
	} else if (!e.msg[0]) {
		BUG("refused without a reason");
	}
	return 0;
}
