/*
 * Fuzz target: the kernel's description of the machine.  The input is a sysfs:
 * the first line lists the nodes' folders, the rest is dealt to the files that
 * are read, a paragraph each by turn; the runtime must take or refuse it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/kfd.h"
#include "tests/attack/driver/driver.h"

struct sysfs {
	struct kfd_driver driver;
	const char *text; /* ends with NUL */
	const char *at;
	int reads;
};

enum { READS = 2000 };

/* "!13" as a paragraph is an error of that number. */
static int read_file(struct kfd_driver *d, const char *path, struct buf *out)
{
	struct sysfs *s = (struct sysfs *)d;

	if (strstr(path, "generation_id"))
		return 0;
	if (!*s->at || s->reads++ > READS)
		return -ENOENT;
	const char *end = strstr(s->at, "\n\n");
	size_t n = end ? (size_t)(end - s->at) + 1 : strlen(s->at);
	int error = *s->at == '!' ? atoi(s->at + 1) : 0;
	buf_add(out, s->at, n);
	s->at += n + (end != NULL);
	return error > 0 && error < 100 ? -error : 0;
}

static int list_dir(struct kfd_driver *d, const char *path, struct buf *out)
{
	struct sysfs *s = (struct sysfs *)d;
	size_t n = strcspn(s->text, "\n");

	(void)path;
	for (size_t i = 0; i < n; i++)
		buf_addc(out, s->text[i] == ' ' ? '\n' : s->text[i]);
	buf_addc(out, '\n');
	s->at = s->text + n + (s->text[n] == '\n');
	return 0;
}

static void use_node(const struct kfd_node *n)
{
	char gfx[16], board[64], pci[16];

	if (n->render_minor > 4095)
		BUG("render node %d", n->render_minor);
	kfd_gfx_name(n->gfx_target, gfx);
	kfd_board_name(n, board);
	kfd_pci_name(n, pci);
	if (strlen(gfx) > 15 || strlen(board) > 63 || strlen(pci) > 15 ||
	    strlen(n->name) > 63)
		BUG("a name is not cut");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sysfs s = { .driver = { .name = "kfd",
				       .read_file = read_file,
				       .list_dir = list_dir } };
	struct kfd_topology t;
	struct err e = { 0 };

	if (size > 16384)
		return 0;
	char *text = xmalloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	s.text = s.at = text;
	if (kfd_topology_read(&s.driver, &t, &e)) {
		for (int i = 0; i < t.n_nodes; i++)
			use_node(&t.node[i]);
		kfd_topology_fini(&t);
	} else if (!e.msg[0]) {
		BUG("refused without a reason");
	}
	free(text);
	return 0;
}
