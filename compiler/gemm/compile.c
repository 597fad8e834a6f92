/*
 * compiler/gemm/compile.c - the objects of a product.
 */
#include <string.h>

#include "compiler/gemm/gemm_int.h"

struct part {
	const struct gemm_op *op;
	const struct gemm_config *config;
	int number; /* 0: the main kernel, 1: that which adds parts up */
};

static struct ssa_func *build_kernel(const void *ctx, struct err *e)
{
	const struct part *p = ctx;

	return (p->number ? gemm_build_reduce : gemm_build_main)(p->op,
								 p->config, e);
}

static bool compile_part(const struct part *p, const struct cc_options *o,
			 struct cc_object *out, struct err *e)
{
	struct ssa_func *f = build_kernel(p, e);
	bool good = f && cc_compile(f, o, out, e);

	ssa_func_free(f);
	return good;
}

static bool fetch_part(struct object_cache *j, const struct part *p,
		       const struct cc_options *o, struct cc_object *out,
		       struct err *e)
{
	char op[128], config[128], what[300];
	struct cache_object x;

	gemm_op_name(p->op, op, sizeof(op));
	gemm_config_name(p->config, config, sizeof(config));
	snprintf(what, sizeof(what), "gemm %s %s %d", op, config, p->number);
	const struct object_request r = { what, o, build_kernel, p };
	if (!object_cache_get(j, &r, &x, e))
		return false;
	*out = (struct cc_object){ 0 };
	buf_add(&out->bytes, x.bytes, x.len);
	cache_object_fini(&x);
	return true;
}

bool gemm_object(struct object_cache *j, const struct gemm_op *op,
		 const struct gemm_config *c, const struct cc_options *o,
		 struct gemm_code *out, struct err *e)
{
	const int parts = gemm_has_parts(c) ? 2 : 1;
	struct cc_options mine;
	char name[128];

	memset(out, 0, sizeof(*out));
	if (!gemm_check(op, c, e))
		return false;
	cc_options_init(&mine);
	if (o)
		mine = *o;
	mine.wgp = !c->cu_mode;
	mine.cu = c->cu_mode;
	while (out->n < parts) {
		const struct part p = { op, c, out->n };
		struct cc_object *to = &out->object[out->n];

		if (!(j ? fetch_part(j, &p, &mine, to, e) :
			  compile_part(&p, &mine, to, e)))
			break;
		out->n++;
	}
	if (out->n == parts)
		return true;
	gemm_code_fini(out);
	gemm_config_name(c, name, sizeof(name));
	return err_wrap(e, "gemm %s", name);
}

bool gemm_compile(const struct gemm_op *op, const struct gemm_config *c,
		  const struct cc_options *o, struct gemm_code *out,
		  struct err *e)
{
	return gemm_object(NULL, op, c, o, out, e);
}

void gemm_code_fini(struct gemm_code *code)
{
	for (int k = 0; k < code->n; k++)
		cc_object_fini(&code->object[k]);
	code->n = 0;
}
