/*
 * compiler/sim/examine/mca.c - asking llvm-mca-19.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/sim/examine/examine.h"
#include "isa/text/text.h"

static void write_path(FILE *f, const struct vector *v)
{
	const struct vector_path *p = &v->path[0];

	for (int i = 0; i < p->n; i++) {
		struct isa_target t = { ISA_GFX11, 32, false };
		struct isa_inst in;
		char text[ISA_TEXT_MAX];

		/* What gfx1100 does not have, llvm-mca does not take. */
		if (isa_decode(&t, v->code + p->off[i],
			       v->code_bytes - p->off[i], &in) ||
		    isa_op_info(in.op)->pipe == ISA_PIPE_BRANCH)
			continue;
		isa_print(&t, &in, text, sizeof(text));
		fprintf(f, "%s\n", text);
	}
}

static double total_cycles(FILE *f)
{
	static const char label[] = "Total Cycles:";
	double cycles = NAN;
	char line[256];

	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, label, strlen(label)))
			cycles = strtod(line + strlen(label), NULL);
	return ferror(f) ? NAN : cycles;
}

double mca_cycles(const struct vector *v)
{
	struct buf path = { 0 };
	struct err e = { 0 };
	char command[128];
	int fd = scratch_file(&path, "mca", &e);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w"), *answer;
	double cycles = NAN;

	if (fd >= 0)
		unlink(path.data);
	if (f) {
		write_path(f, v);
		snprintf(command, sizeof(command), "llvm-mca-19 -mtriple=amdgcn"
			 " -mcpu=gfx1100 -iterations=1 /dev/fd/%d 2>/dev/null",
			 fd);
		answer = fflush(f) ? NULL : popen(command, "r");
		if (answer) {
			cycles = total_cycles(answer);
			pclose(answer);
		}
		fclose(f);
	} else if (fd >= 0) {
		close(fd);
	}
	buf_fini(&path);
	return cycles;
}
