/*
 * Short programs whose authors confirmed the results on a card: 795 cases, run
 * on the emulator's waves.  The vectors lie beside the checkout.
 *
 * T0_HW_FAILURES=FILE also writes what failed, with the instructions.
 */
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "tests/exec/wave.h"
#include "tests/tap.h"

#define VECTORS "../shared/vectors/gfx1100_hw.jsonl"
#define KERNARG 2048 /* in the data page; the output buffer is its beginning \
		      */

/* ------------------------------------------------------- expressions ---- */

/* "f32((v0[3] >> 0x10))": integers, or doubles after f16, f32 and f64. */
struct value {
	bool is_float;
	uint64_t i;
	double f;
};

static const struct bench *bench;

static struct value parse(const char **s);

static struct value integer(uint64_t i)
{
	return (struct value){ false, i, 0 };
}

static struct value real(double f)
{
	return (struct value){ true, 0, f };
}

static bool eat(const char **s, const char *word)
{
	size_t n = strlen(word);

	while (isspace((unsigned char)**s))
		++*s;
	if (strncmp(*s, word, n) != 0)
		return false;
	*s += n;
	return true;
}

static struct value to_float(uint64_t bits, int size)
{
	double d;
	float f;
	_Float16 h;

	if (size == 64) {
		memcpy(&d, &bits, 8);
		return real(d);
	}
	if (size == 32) {
		memcpy(&f, &bits, 4);
		return real(f);
	}
	memcpy(&h, &bits, 2);
	return real(h);
}

static uint32_t reg(const char **s)
{
	const char *p = *s;
	char file = *p++;
	unsigned n = (unsigned)strtoul(p, (char **)&p, 10), lane = 0;

	if (*p == '[') {
		lane = (unsigned)strtoul(p + 1, (char **)&p, 10);
		p++;
	}
	*s = p;
	return file == 'v' ? bench->wave[lane / 32].v[0][n][lane % 32] :
			     bench->wave[0].s[n];
}

static struct value call(const char **s, int size)
{
	struct value v = parse(s);

	eat(s, ")");
	return size ? to_float(v.i, size) : real(fabs(v.f));
}

static struct value term(const char **s)
{
	struct value v;

	if (eat(s, "f16("))
		return call(s, 16);
	if (eat(s, "f32("))
		return call(s, 32);
	if (eat(s, "f64("))
		return call(s, 64);
	if (eat(s, "abs("))
		return call(s, 0);
	if (eat(s, "vcc"))
		return integer(bench->wave[0].s[ISA_R_VCC_LO]);
	if (eat(s, "scc"))
		return integer(bench->wave[0].scc);
	if (eat(s, "exec"))
		return integer(bench->wave[0].s[ISA_R_EXEC_LO]);
	if (eat(s, "(")) {
		v = parse(s);
		eat(s, ")");
		return v;
	}
	if (**s == 'v' || **s == 's')
		return integer(reg(s));
	return integer(strtoull(*s, (char **)s, 0));
}

/* Every pair is in parentheses, so there is no precedence. */
static struct value parse(const char **s)
{
	struct value a = term(s), b;
	char op;

	eat(s, "");
	if (!**s || !strchr("&|<>+-", **s))
		return a;
	op = **s;
	*s += op == '<' || op == '>' ? 2 : 1;
	b = term(s);
	switch (op) {
	case '&':
		return integer(a.i & b.i);
	case '|':
		return integer(a.i | b.i);
	case '<':
		return integer(a.i << b.i);
	case '>':
		return integer(a.i >> b.i);
	case '+':
		return a.is_float ? real(a.f + b.f) : integer(a.i + b.i);
	}
	return a.is_float ? real(a.f - b.f) : integer(a.i - b.i);
}

static struct value evaluate(const char *text)
{
	return parse(&text);
}

/* ------------------------------------------------------------ checks ---- */

static double number(struct value v)
{
	return v.is_float ? v.f : (double)(int64_t)v.i;
}

static struct value json_value(const json_t *v)
{
	const char *u = json_string_value(json_object_get(v, "unsigned"));

	if (u)
		return integer(strtoull(u, NULL, 10));
	if (json_is_object(v))
		return real(strtod(
			json_string_value(json_object_get(v, "float")), NULL));
	if (json_is_real(v))
		return real(json_real_value(v));
	return integer((uint64_t)json_integer_value(v));
}

static bool same(struct value a, struct value b)
{
	if (!a.is_float && !b.is_float)
		return a.i == b.i;
	return number(a) == number(b);
}

/* Python's assertAlmostEqual: the difference rounds to 0, or is below delta. */
static bool close_to(struct value a, struct value b, const json_t *check)
{
	const json_t *delta = json_object_get(check, "delta");
	const json_t *places = json_object_get(check, "places");
	double d = fabs(number(a) - number(b));

	if (same(a, b))
		return true;
	if (delta)
		return d <= json_number_value(delta);
	return d <= 0.5 * pow(10, -(double)json_integer_value(places));
}

static bool is_nan32(uint32_t v)
{
	return (v & 0x7fffffff) > 0x7f800000;
}

/* A register against its final state; NaNs are equal. */
static bool as_state(const char *name, const json_t *cas)
{
	const json_t *state = json_object_get(cas, "state"), *v;
	int64_t ulp = json_integer_value(json_object_get(cas, "ulp_tolerance"));
	const char *p = name + 1;
	uint32_t got, want;
	char key[8];
	int64_t d;

	got = (uint32_t)evaluate(name).i;
	if (*name == 'v' && isdigit((unsigned char)*p)) {
		unsigned n = (unsigned)strtoul(p, (char **)&p, 10);

		snprintf(key, sizeof(key), "%u", n);
		v = json_array_get(
			json_object_get(json_object_get(state, "v"), key),
			strtoul(p + 1, NULL, 10));
	} else if (*name == 's' && isdigit((unsigned char)*p)) {
		v = json_array_get(json_object_get(state, "s"),
				   strtoul(p, NULL, 10));
	} else {
		v = json_object_get(state, name);
	}
	if (!v || json_is_null(v))
		return true;
	want = json_is_string(v) ?
		       (uint32_t)strtoul(json_string_value(v), NULL, 16) :
		       (uint32_t)json_integer_value(v);
	d = (int64_t)(int32_t)got - (int32_t)want;
	return got == want || (is_nan32(got) && is_nan32(want)) ||
	       (d < 0 ? -d : d) <= ulp;
}

static bool passes(const json_t *check, const json_t *cas)
{
	const char *op = json_string_value(json_object_get(check, "op"));
	const char *rhs = json_string_value(json_object_get(check, "rhs_expr"));
	struct value a, b;
	const json_t *name;
	size_t i;

	if (json_object_get(check, "opaque")) {
		json_array_foreach(json_object_get(check, "regs"), i,
				   name) if (!as_state(json_string_value(name),
						       cas)) return false;
		return true;
	}
	a = evaluate(json_string_value(json_object_get(check, "lhs")));
	b = rhs ? evaluate(rhs) : json_value(json_object_get(check, "value"));
	if (!strcmp(op, "Equal"))
		return same(a, b);
	if (!strcmp(op, "NotEqual"))
		return !same(a, b);
	if (!strcmp(op, "AlmostEqual"))
		return close_to(a, b, check);
	if (!strcmp(op, "Greater"))
		return number(a) > number(b);
	if (!strcmp(op, "GreaterEqual"))
		return number(a) >= number(b);
	if (!strcmp(op, "Less"))
		return number(a) < number(b);
	diag("unknown check %s", op);
	return false;
}

/* ------------------------------------------------------------- cases ---- */

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower(c) - 'a' + 10;
}

static size_t unhex(const char *hex, uint8_t *out, size_t max)
{
	size_t n = 0;

	for (; hex[0] && hex[1] && n < max; hex += 2)
		out[n++] = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));
	return n;
}

/* The state that the vectors' prologue leaves. */
static void enter(struct bench *b, int lanes)
{
	b->mem->u64[KERNARG / 8] = BENCH_DATA;
	for (int i = 0; i < b->group.n_waves; i++) {
		struct soft_wave *w = &b->wave[i];
		int n = lanes - 32 * i;

		w->s[80] = (uint32_t)(BENCH_DATA + KERNARG);
		w->s[81] = (BENCH_DATA + KERNARG) >> 32;
		w->s[ISA_R_EXEC_LO] = n >= 32 ? UINT32_MAX : (1u << n) - 1;
		for (int l = 0; l < 32; l++)
			w->v[0][255][l] = (uint32_t)(32 * i + l);
	}
}

static void report(const json_t *cas, const struct bench *b, const char *check)
{
	const char *path = getenv("T0_HW_FAILURES");
	const json_t *line;
	FILE *f = path ? fopen(path, "a") : NULL;
	size_t i;

	if (!f)
		return;
	fprintf(f, "%s\n  %s\n", json_string_value(json_object_get(cas, "id")),
		b->wave[0].state == SOFT_FAULTED ? b->wave[0].fault.text :
						   check);
	json_array_foreach(json_object_get(cas, "asm"), i, line)
		fprintf(f, "    %s\n", json_string_value(line));
	fclose(f);
}

/*
 * Cases that a gfx1100 does not execute as their authors say; each must be
 * refused as illegal.
 */
static const struct {
	const char *id, *why;
} not_gfx1100[] = {
	{ "TestBasicScalar::test_s_fmamk_f32", "gfx1150 has s_fmamk_f32" },
	{ "TestVInterp::test_v_interp_p10_f16_f32#0", "VINTERP takes VGPRs" },
	{ "TestVInterp::test_v_interp_p10_f32#0", "VINTERP takes VGPRs" },
};

static const char *refusal(const char *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(not_gfx1100); i++)
		if (strstr(id, not_gfx1100[i].id))
			return not_gfx1100[i].why;
	return NULL;
}

static void run_case(const json_t *cas)
{
	int lanes = (int)json_integer_value(json_object_get(cas, "n_lanes"));
	const char *id = json_string_value(json_object_get(cas, "id"));
	uint8_t code[3 * BENCH_PAGE];
	char *failed = NULL;
	struct bench b;
	const json_t *check;
	size_t i, n;

	bench_init(&b, 32, (lanes + 31) / 32);
	bench = &b;
	enter(&b, lanes);
	n = unhex(json_string_value(json_object_get(cas, "code")), code,
		  sizeof(code));
	bench_load(&b, code, n);
	bench_go(&b);
	if (refusal(id)) {
		is_u64(b.wave[0].fault.kind, SOFT_FAULT_ILLEGAL,
		       "%s is illegal: %s", id, refusal(id));
		bench_fini(&b);
		return;
	}
	json_array_foreach(json_object_get(cas, "checks"), i,
			   check) if (!failed && !passes(check, cas))
		failed = json_dumps(check, 0);
	if (!ok(!failed && b.wave[0].state == SOFT_ENDED, "%s", id)) {
		diag("%s", b.wave[0].state == SOFT_FAULTED ?
				   b.wave[0].fault.text :
				   failed);
		report(cas, &b, failed);
	}
	free(failed);
	bench_fini(&b);
}

/*
 * JSON integers here end at 2^63; longer ones become {"unsigned":"..."}.
 * Returns what is to be freed.
 */
static char *fit_integers(const char *line)
{
	static const char key[] = "\"value\":";
	struct buf b = { 0 };
	const char *p;

	while ((p = strstr(line, key))) {
		size_t n = strspn(p + sizeof(key) - 1, "0123456789");

		p += sizeof(key) - 1;
		buf_add(&b, line, (size_t)(p - line));
		buf_printf(&b, n < 19 ? "%.*s" : "{\"unsigned\":\"%.*s\"}",
			   (int)n, p);
		line = p + n;
	}
	buf_adds(&b, line);
	return b.data;
}

int main(void)
{
	FILE *f = fopen(VECTORS, "r");
	char *line = NULL;
	size_t cap = 0;
	int n = 0;

	if (!f)
		skip_all("no hardware vectors: %s is not there", VECTORS);
	while (getline(&line, &cap, f) > 0) {
		json_error_t e;
		char *fitted = fit_integers(line);
		json_t *cas = json_loads(fitted, 0, &e);

		free(fitted);
		if (!cas) {
			ok(false, "line %d is JSON: %s", n + 1, e.text);
			continue;
		}
		run_case(cas);
		json_decref(cas);
		n++;
	}
	free(line);
	fclose(f);
	is_u64((uint64_t)n, 795, "all cases were there");
	return plan_done();
}
