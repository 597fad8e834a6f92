/*
 * isa/launch/operand.c - one kernel argument as a user writes it.
 */
#include "isa/launch/launch.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char operand_help[] =
	"Arguments, one for each that --list shows:\n"
	"  TYPE:V[,V...]      a value, or a vector of them: i32:-5 "
	"f32:1.5,2,3,4\n"
	"  bytes:HEX          a structure by value: bytes:0100000000000040\n"
	"  buf:N:TYPE[=INIT][>FILE]  memory of N values; `out:` the same, and "
	"it is\n"
	"                     part of the result.  Without TYPE: N bytes "
	"(u8).\n"
	"  null               a pointer that is 0;  u64:ADDRESS is any other\n"
	"  ref:I[+BYTES]      the memory of argument I, counted from 0\n"
	"  lds:BYTES          dynamic LDS, for a pointer to local memory\n"
	"TYPE is i, u, x (hexadecimal) with 8, 16, 32, 64 bits, or f16 bf16 "
	"f32 f64.\n"
	"N has the suffixes k, M, G (powers of 2).  INIT fills the memory:\n"
	"  zero (the default), V (all), A,B,C (these, then 0),\n"
	"  none (not written at all; see --check),\n"
	"  iota, iota(START,STEP), random, random(SEED), random(SEED,LO,HI),\n"
	"  file:PATH (raw bytes, exactly as many).  >FILE writes it after the "
	"run.\n";

/* "buf:4k:f32=iota>x.bin", behind the colon; `copy` may be cut up. */
static bool parse_buffer(struct operand *o, char *copy, uint64_t seed,
			 struct err *e)
{
	char *init = strchr(copy, '='), *type, *save = strrchr(copy, '>');
	uint64_t n;

	if (save) {
		*save++ = '\0';
		if (!*save)
			return err_set(e, ERR_USAGE, "no file after '>'");
		o->save = xstrdup(save);
	}
	if (init)
		*init++ = '\0';
	type = strchr(copy, ':');
	if (type)
		*type++ = '\0';
	o->type = type ? value_type_find(type, strlen(type)) :
			 value_type_find("u8", 2);
	if (!o->type)
		return err_set(e, ERR_USAGE, "'%s' is no type; there are %s",
			       type, VALUE_TYPES);
	if (!cli_u64(copy, &n, e))
		return err_wrap(e, "number of values");
	if (!n || n > OPERAND_MAX_BYTES / o->type->size_bytes)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64
			       " values of %u bytes: expected 1 byte "
			       "to 1 TiB",
			       n, o->type->size_bytes);
	o->kind = OPERAND_BUFFER;
	o->count = n;
	o->size_bytes = n * o->type->size_bytes;
	o->data = xmalloc(o->size_bytes);
	o->untouched = init && !strcmp(init, "none");
	return value_fill(o->type, o->data, o->count,
			  init && !o->untouched ? init : "zero", seed, e);
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ?
		       c - '0' :
	       isxdigit((unsigned char)c) ?
		       tolower((unsigned char)c) - 'a' + 10 :
		       -1;
}

static bool parse_bytes(struct operand *o, const char *hex, struct err *e)
{
	size_t n = strlen(hex);

	if (!n || n % 2)
		return err_set(e, ERR_USAGE,
			       "%zu hexadecimal digits, expected an even "
			       "number",
			       n);
	o->type = value_type_find("x8", 2);
	o->count = o->size_bytes = n / 2;
	o->data = xmalloc(o->size_bytes);
	for (size_t i = 0; i < n / 2; i++) {
		int hi = hex_digit(hex[2 * i]), lo = hex_digit(hex[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return err_set(e, ERR_USAGE,
				       "'%.2s' is no hexadecimal byte",
				       hex + 2 * i);
		o->data[i] = (uint8_t)(hi << 4 | lo);
	}
	return true;
}

/* "1.5" or "1,2,3,4" behind "TYPE:". */
static bool parse_value(struct operand *o, const char *list, struct err *e)
{
	char *copy = xstrdup(list), *at = copy;
	struct buf bytes = { 0 };
	bool good = true;

	while (at && good) {
		char *comma = strchr(at, ',');
		uint64_t v = 0;

		if (comma)
			*comma++ = '\0';
		good = value_parse(o->type, at, &v, e);
		buf_add(&bytes, &v, o->type->size_bytes);
		o->count++;
		at = comma;
	}
	o->size_bytes = bytes.len;
	o->data = xmalloc(bytes.len);
	memcpy(o->data, bytes.data, bytes.len);
	buf_fini(&bytes);
	free(copy);
	return good;
}

static bool parse_ref(struct operand *o, char *copy, struct err *e)
{
	char *plus = strchr(copy, '+');
	uint64_t index;

	if (plus)
		*plus++ = '\0';
	if (!cli_u64(copy, &index, e) ||
	    (plus && !cli_u64(plus, &o->ref_offset, e)))
		return false;
	if (index > 4096)
		return err_set(e, ERR_USAGE, "no argument %" PRIu64, index);
	o->kind = OPERAND_REF;
	o->ref = (int)index;
	return true;
}

static bool parse_lds(struct operand *o, const char *text, struct err *e)
{
	uint64_t n;

	if (!cli_u64(text, &n, e))
		return false;
	if (n > 65536)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64 " bytes of LDS, a workgroup has at "
			       "most 65536",
			       n);
	o->kind = OPERAND_LDS;
	o->size_bytes = n;
	return true;
}

static bool parse_kind(struct operand *o, char *copy, uint64_t seed,
		       struct err *e)
{
	char *rest = strchr(copy, ':');
	size_t n = rest ? (size_t)(rest - copy) : strlen(copy);

	if (!strcmp(copy, "null")) {
		o->type = value_type_find("x64", 3);
		return parse_value(o, "0", e);
	}
	if (!rest || !rest[1])
		return err_set(e, ERR_USAGE,
			       "expected TYPE:VALUE, buf:N:TYPE, out:N:TYPE, "
			       "null, ref:I, lds:BYTES or bytes:HEX");
	*rest++ = '\0';
	o->is_out = !strcmp(copy, "out");
	if (o->is_out || !strcmp(copy, "buf"))
		return parse_buffer(o, rest, seed, e);
	if (!strcmp(copy, "ref"))
		return parse_ref(o, rest, e);
	if (!strcmp(copy, "lds"))
		return parse_lds(o, rest, e);
	if (!strcmp(copy, "bytes"))
		return parse_bytes(o, rest, e);
	o->type = value_type_find(copy, n);
	if (!o->type)
		return err_set(e, ERR_USAGE,
			       "'%s' is no type; there are %s, buf, out, ref, "
			       "lds, bytes, null",
			       copy, VALUE_TYPES);
	return parse_value(o, rest, e);
}

bool operand_is(const char *text)
{
	return strchr(text, ':') || !strcmp(text, "null");
}

bool operand_parse(struct operand *o, const char *text, uint64_t seed,
		   struct err *e)
{
	char *copy = xstrdup(text);
	bool good;

	*o = (struct operand){ .text = text, .kind = OPERAND_VALUE };
	good = parse_kind(o, copy, seed, e);
	free(copy);
	if (!good) {
		operand_fini(o);
		return err_wrap(e, "argument '%s'", text);
	}
	return true;
}

void operand_fini(struct operand *o)
{
	free(o->data);
	free(o->save);
	*o = (struct operand){ 0 };
}

/* ---- against the metadata ------------------------------------------------ */

void operand_wanted(const struct co_arg *a, struct buf *out)
{
	if (a->kind == CO_ARG_DYNAMIC_SHARED_POINTER)
		buf_adds(out, "lds:BYTES");
	else if (a->kind == CO_ARG_GLOBAL_BUFFER)
		buf_adds(out, "buf:N:TYPE");
	else
		buf_printf(out, "%u bytes %s", a->size,
			   co_arg_kind_name(a->kind));
	buf_printf(out, "%s%s%s%s", *a->type_name ? ", " : "", a->type_name,
		   *a->name ? " " : "", a->name);
}

/* Is `type` this C type, or a vector of it ("float4")? */
static bool is_type(const char *type, const char *base)
{
	size_t n = strlen(base);

	return !strncmp(type, base, n) &&
	       strspn(type + n, "0123456789") == strlen(type + n);
}

/*
 * Is a number of a C type given as the other kind of number?  Passing the
 * bits of an integer as a float is what nobody means; x32: says it on purpose.
 */
static bool wrong_class(const struct co_arg *a, const struct operand *o)
{
	static const char *const floats[] = { "half", "float", "double" };
	static const char *const ints[] = { "char", "short", "int", "long" };
	const char *type = a->type_name;

	if (o->type->class == VALUE_HEX)
		return false;
	if (o->type->class != VALUE_FLOAT) {
		for (size_t i = 0; i < ARRAY_SIZE(floats); i++)
			if (is_type(type, floats[i]))
				return true;
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ints); i++)
		if (is_type(type + (*type == 'u'), ints[i]))
			return true;
	return false;
}

bool operand_fits(const struct operand *o, const struct co_arg *a)
{
	switch (o->kind) {
	case OPERAND_VALUE:
		return a->kind != CO_ARG_DYNAMIC_SHARED_POINTER &&
		       o->size_bytes == a->size && !wrong_class(a, o);
	case OPERAND_BUFFER:
	case OPERAND_REF:
		return a->kind == CO_ARG_GLOBAL_BUFFER && a->size == 8;
	case OPERAND_LDS:
		return a->kind == CO_ARG_DYNAMIC_SHARED_POINTER && a->size == 4;
	}
	return false;
}
