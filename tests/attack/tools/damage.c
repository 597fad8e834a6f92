/*
 * What is done to a file: bytes of it, or something else in its place.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/attack/tools/campaign.h"

/* Numbers that lengths and offsets should not be. */
static const uint64_t odd_numbers[] = {
	0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000,
	0xffffffff, 0x7fffffffffffffff, 0x8000000000000000, UINT64_MAX,
	UINT64_MAX - 7, 0x100000000, 1 << 30,
};

/* Digits in a text become another number. */
static void change_digits(struct attack *a, struct buf *b)
{
	size_t at = below(a, b->len), from = at;

	while (at < b->len && !strchr("0123456789", b->data[at]))
		at++;
	if (at >= b->len) {
		b->data[from] ^= 1;
		return;
	}
	size_t end = at;
	while (end < b->len && strchr("0123456789.", b->data[end]))
		end++;
	struct buf out = { 0 };
	buf_add(&out, b->data, at);
	buf_adds(&out, hostile_word(a));
	buf_add(&out, b->data + end, b->len - end);
	buf_fini(b);
	*b = out;
}

/* A piece of it moves to another place, over or before what is there. */
static void splice_piece(struct attack *a, struct buf *b, bool over)
{
	size_t from = below(a, b->len), to = below(a, b->len);
	size_t len = log_uniform(a, 1, 4096);

	if (len > b->len - from)
		len = b->len - from;
	if (over) {
		if (len > b->len - to)
			len = b->len - to;
		memmove(b->data + to, b->data + from, len);
		return;
	}
	struct buf out = { 0 };
	buf_add(&out, b->data, to);
	buf_add(&out, b->data + from, len);
	buf_add(&out, b->data + to, b->len - to);
	buf_fini(b);
	*b = out;
}

static void cut_piece(struct attack *a, struct buf *b)
{
	size_t from = below(a, b->len), len = log_uniform(a, 1, 4096);

	if (len > b->len - from)
		len = b->len - from;
	memmove(b->data + from, b->data + from + len, b->len - from - len);
	b->len -= len;
}

static void put_word(struct attack *a, struct buf *b)
{
	const char *word = hostile_word(a);
	size_t at = below(a, b->len + 1);
	struct buf out = { 0 };

	buf_add(&out, b->data, at);
	buf_adds(&out, word);
	buf_add(&out, b->data + at, b->len - at);
	buf_fini(b);
	*b = out;
}

/* Most facts of a file stand at its begin and end. */
static size_t likely_place(struct attack *a, size_t len)
{
	size_t near = len < 512 ? len : 512;

	switch (below(a, 3)) {
	case 0:
		return below(a, near);
	case 1:
		return len - 1 - below(a, near);
	default:
		return below(a, len);
	}
}

static void damage_once(struct attack *a, struct buf *b)
{
	size_t at = likely_place(a, b->len);

	switch (below(a, 9)) {
	case 0:
		b->data[at] ^= (char)(1 << below(a, 8));
		break;
	case 1:
		b->data[at] = (char)below(a, 256);
		break;
	case 2: { /* a number of 1, 2, 4 or 8 bytes */
		uint64_t v = odd_numbers[below(a, ARRAY_SIZE(odd_numbers))];
		size_t size = (size_t)1 << below(a, 4);

		at -= at % size;
		if (at + size <= b->len)
			memcpy(b->data + at, &v, size);
		break;
	}
	case 3:
		b->len = at;
		break;
	case 4:
		splice_piece(a, b, true);
		break;
	case 5:
		splice_piece(a, b, false);
		break;
	case 6:
		cut_piece(a, b);
		break;
	case 7:
		put_word(a, b);
		break;
	case 8:
		change_digits(a, b);
		break;
	}
}

void damage_file(struct attack *a, const char *path)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	uint64_t times = log_uniform(a, 1, 16);

	if (!file_read(path, 0, &b, &e)) {
		fault(a, "the campaign cannot read %s", path);
		return;
	}
	for (uint64_t i = 0; i < times && b.len; i++)
		damage_once(a, &b);
	int fd = open(path, O_WRONLY | O_TRUNC);
	if (fd < 0 || write(fd, b.data, b.len) != (ssize_t)b.len)
		fault(a, "the campaign cannot write %s", path);
	if (fd >= 0)
		close(fd);
	buf_fini(&b);
}

void special_file(const char *path, enum special kind)
{
	static const char *const target[SPECIAL_KINDS] = {
		[SPECIAL_DANGLING] = "nowhere", [SPECIAL_FULL] = "/dev/full",
		[SPECIAL_ZERO] = "/dev/zero", [SPECIAL_NULL] = "/dev/null",
		[SPECIAL_NOWHERE] = "/proc/none/x",
	};
	const char *name = strrchr(path, '/') + 1;

	if (kind == SPECIAL_UNREADABLE) {
		chmod(path, 0);
		return;
	}
	remove_tree(path);
	if (kind == SPECIAL_EMPTY)
		close(open(path, O_WRONLY | O_CREAT, 0666));
	else if (kind == SPECIAL_FOLDER)
		mkdir(path, 0777);
	else if (kind == SPECIAL_FIFO)
		mkfifo(path, 0666);
	else if (kind != SPECIAL_MISSING &&
		 symlink(kind == SPECIAL_LOOP ? name : target[kind], path))
		return;
}
