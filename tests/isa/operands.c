/* Typed values and arguments as text; wanted bits are worked out by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "isa/launch/launch.h"
#include "tests/tap.h"

static void test_parse(void)
{
	static const struct {
		const char *type, *text;
		uint64_t bits;
	} t[] = {
		{ "i8", "-128", 0x80 },
		{ "i32", "-1", 0xffffffff },
		{ "u64", "0x123456789abcdef0", 0x123456789abcdef0 },
		{ "f32", "1.5", 0x3fc00000 },
		{ "f32", "0.1", 0x3dcccccd },
		{ "f32", "-0", 0x80000000 },
		{ "f32", "1e-45", 1 },
		{ "f32", "inf", 0x7f800000 },
		{ "f32", "nan", 0x7fc00000 },
		{ "f64", "0.1", 0x3fb999999999999a },
		{ "f64", "5e-324", 1 },
		{ "f16", "1", 0x3c00 },
		{ "f16", "65504", 0x7bff },
		{ "f16", "6.103515625e-05", 0x0400 }, /* least normal */
		{ "f16", "6.097555160522461e-05", 0x03ff },
		{ "f16", "5.960464477539063e-08", 0x0001 },
		{ "f16", "2.98e-08", 0x0000 },	    /* just below the half */
		{ "f16", "1.00048828125", 0x3c00 }, /* tie to even */
		{ "f16", "1.00146484375", 0x3c02 }, /* tie to even */
		{ "bf16", "1", 0x3f80 },
		{ "bf16", "3.140625", 0x4049 },
		{ "bf16", "1.00390625", 0x3f80 }, /* tie to even */
		{ "bf16", "1.01171875", 0x3f82 },
		{ "x16", "0xbeef", 0xbeef },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const struct value_type *type =
			value_type_find(t[i].type, strlen(t[i].type));
		struct err e = { 0 };
		uint64_t v = 0;

		ok(type && value_parse(type, t[i].text, &v, &e),
		   "%s:%s is read", t[i].type, t[i].text);
		is_u64(v, t[i].bits, "%s:%s has the right bits", t[i].type,
		       t[i].text);
	}
}

static void test_refuse(void)
{
	static const char *const bad[] = {
		"i8:128",
		"u8:-1",
		"u8:256",
		"i32:0xffffffff",
		"f16:65520",
		"f32:1e39",
		"f64:1e999",
		"i32:1.5",
		"i32:",
		"i32:1x",
		"f32:",
		"q32:1",
		"buf",
		"buf:",
		"buf:0:f32",
		"buf:4:q",
		"buf:1T:u8",
		"buf:4:f32=what",
		"buf:2:i32=1,2,3",
		"buf:4:i32=random(1,2)",
		"buf:4:i32=random(1,5,2)",
		"buf:4:f32=iota(1,2,3)",
		"buf:4:u8>",
		"buf:4:u8=file:/nonexistent",
		"bytes:abc",
		"bytes:zz",
		"lds:65537",
		"ref:x",
		"",
		":",
		"nullx",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct operand o;
		struct err e = { 0 };

		ok(!operand_parse(&o, bad[i], 0, &e) && e.msg[0],
		   "'%s' is refused with a reason", bad[i]);
	}
}

/* Every f16 and bf16 but NaN is printed so that it reads back. */
static void test_round_trip(const char *name)
{
	const struct value_type *t = value_type_find(name, strlen(name));
	struct buf text = { 0 };
	struct err e = { 0 };
	uint32_t wrong = 0;

	for (uint32_t v = 0; v < 65536; v++) {
		uint16_t in = (uint16_t)v, back = 0;
		double f;

		if (!value_f64(t, &in, &f) && isnan(f))
			continue;
		buf_reset(&text);
		value_print(t, &in, &text);
		wrong += !value_parse(t, text.data, &back, &e) || back != in;
	}
	is_u64(wrong, 0, "every %s reads back as it was", name);
	buf_fini(&text);
}

static void *filled(const char *text)
{
	struct operand o;
	struct err e = { 0 };
	void *data;

	if (!operand_parse(&o, text, 7, &e)) {
		diag("%s", e.msg);
		return NULL;
	}
	data = o.data;
	o.data = NULL;
	operand_fini(&o);
	return data;
}

static void test_fill(void)
{
	int32_t *i = filled("buf:4:i32=iota(5,-3)");
	uint8_t *b = filled("buf:4=1,2");
	uint16_t *h = filled("buf:3:f16=0.5");
	uint64_t *r = filled("buf:2:u64=random(0)");
	float *f = filled("buf:1k:f32=random(3,10,20)");
	bool inside = true;

	is_mem(i, ((int32_t[]){ 5, 2, -1, -4 }), 16, "iota with a step");
	is_mem(b, "\1\2\0\0", 4, "a list is filled up with zeros");
	is_mem(h, ((uint16_t[]){ 0x3800, 0x3800, 0x3800 }), 6,
	       "one value fills all");
	/* The published first outputs of splitmix64 with seed 0. */
	is_u64(r[0], 0xe220a8397b1dcdaf, "random is splitmix64");
	is_u64(r[1], 0x6e789e6aa1b965f4, "and goes on as such");
	for (int n = 0; n < 1024; n++)
		inside &= f[n] >= 10 && f[n] < 20;
	ok(inside && f[0] != f[1], "random stays in its range");
	free(i);
	free(b);
	free(h);
	free(r);
	free(f);
}

static void test_operands(void)
{
	struct operand o;
	struct err e = { 0 };

	ok(operand_parse(&o, "f32:1,2,3", 0, &e) && o.size_bytes == 12,
	   "a vector by value");
	operand_fini(&o);
	ok(operand_parse(&o, "bytes:00fF10", 0, &e) && o.size_bytes == 3 &&
		   o.data[1] == 0xff,
	   "a structure by value");
	operand_fini(&o);
	ok(operand_parse(&o, "out:2:f64=1>x.bin", 0, &e) && o.is_out &&
		   o.size_bytes == 16,
	   "a result buffer");
	is_str(o.save, "x.bin", "with the file to write");
	operand_fini(&o);
	ok(operand_parse(&o, "ref:3+0x10", 0, &e) && o.ref == 3 &&
		   o.ref_offset == 16,
	   "a reference with an offset");
	operand_fini(&o);
	ok(operand_parse(&o, "null", 0, &e) && o.size_bytes == 8 && !o.data[0],
	   "null is 8 bytes of 0");
	operand_fini(&o);
}

int main(void)
{
	test_parse();
	test_refuse();
	test_round_trip("f16");
	test_round_trip("bf16");
	test_fill();
	test_operands();
	return plan_done();
}
