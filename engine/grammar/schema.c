/*
 * engine/grammar/schema.c - JSON schemas as rules.
 */
#include <math.h>

#include "engine/grammar/grammar_int.h"

enum {
	IS_NULL = 1 << 0,
	IS_BOOLEAN = 1 << 1,
	IS_INTEGER = 1 << 2,
	IS_NUMBER = 1 << 3,
	IS_STRING = 1 << 4,
	IS_ARRAY = 1 << 5,
	IS_OBJECT = 1 << 6,
	IS_ANY = (1 << 7) - 1,
	SAYS_NOTHING = 1 << 7, /* an annotation */
	DECIDES = 1 << 8,      /* it stands alone */
};

static const struct {
	const char *name;
	unsigned type;
} types[] = {
	{ "null", IS_NULL },	   { "boolean", IS_BOOLEAN },
	{ "integer", IS_INTEGER }, { "number", IS_NUMBER },
	{ "string", IS_STRING },   { "array", IS_ARRAY },
	{ "object", IS_OBJECT },
};

/* Which types a keyword is about. */
static const struct {
	const char *name;
	unsigned about;
} keywords[] = {
	{ "type", IS_ANY },
	{ "properties", IS_OBJECT },
	{ "required", IS_OBJECT },
	{ "additionalProperties", IS_OBJECT },
	{ "items", IS_ARRAY },
	{ "prefixItems", IS_ARRAY },
	{ "minItems", IS_ARRAY },
	{ "maxItems", IS_ARRAY },
	{ "minLength", IS_STRING },
	{ "maxLength", IS_STRING },
	{ "minimum", IS_INTEGER },
	{ "maximum", IS_INTEGER },
	{ "exclusiveMinimum", IS_INTEGER },
	{ "exclusiveMaximum", IS_INTEGER },
	{ "enum", DECIDES },
	{ "const", DECIDES },
	{ "anyOf", DECIDES },
	{ "allOf", DECIDES },
	{ "$ref", DECIDES },
	{ "$schema", SAYS_NOTHING },
	{ "$id", SAYS_NOTHING },
	{ "$defs", SAYS_NOTHING },
	{ "definitions", SAYS_NOTHING },
	{ "$comment", SAYS_NOTHING },
	{ "title", SAYS_NOTHING },
	{ "description", SAYS_NOTHING },
	{ "default", SAYS_NOTHING },
	{ "examples", SAYS_NOTHING },
	{ "deprecated", SAYS_NOTHING },
	{ "readOnly", SAYS_NOTHING },
	{ "writeOnly", SAYS_NOTHING },
};

bool schema_refuse(struct maker *m, const char *keyword, json_t *got,
		   const char *wanted)
{
	char *text = json_dumps(got, JSON_COMPACT | JSON_ENCODE_ANY);

	err_set(m->e, ERR_UNSUPPORTED, "a schema's \"%s\" is %.80s; wanted %s",
		keyword, text ? text : "missing", wanted);
	free(text);
	return false;
}

/* ---- literals ---- */

void schema_add_literal(struct maker *m, struct seq *s, json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	seq_add_text(m->g, s, text, strlen(text));
	free(text);
}

static unsigned type_of(const json_t *x)
{
	switch (json_typeof(x)) {
	case JSON_OBJECT:
		return IS_OBJECT;
	case JSON_ARRAY:
		return IS_ARRAY;
	case JSON_STRING:
		return IS_STRING;
	case JSON_INTEGER:
		return IS_INTEGER | IS_NUMBER;
	case JSON_REAL:
		return IS_NUMBER |
		       (json_real_value(x) == trunc(json_real_value(x)) ?
				IS_INTEGER :
				0);
	case JSON_NULL:
		return IS_NULL;
	default:
		return IS_BOOLEAN;
	}
}

static bool add_enum(struct maker *m, json_t *list, unsigned type,
		     uint32_t rule)
{
	struct seq s = { 0 };
	json_t *x;
	size_t i, n = 0;

	json_array_foreach (list, i, x) {
		if (!(type_of(x) & type))
			continue;
		schema_add_literal(m, &s, x);
		grammar_add_seq(m->g, rule, &s);
		n++;
	}
	return n || schema_refuse(m, "enum", list,
				  "a list with a value of the type");
}

/* ---- strings and integers ---- */

/* A count in *n, where there is one. */
bool schema_read_times(struct maker *m, json_t *schema, const char *name,
		       uint32_t *n)
{
	json_t *x = json_object_get(schema, name);

	if (!x)
		return true;
	if (!json_is_integer(x) || json_integer_value(x) < 0 ||
	    json_integer_value(x) > MOST_TIMES)
		return schema_refuse(m, name, x, "an integer from 0 to 4096");
	*n = (uint32_t)json_integer_value(x);
	return true;
}

static bool add_string(struct maker *m, json_t *schema, uint32_t rule)
{
	uint32_t least = 0, most = UINT32_MAX;

	if (!schema_read_times(m, schema, "minLength", &least) ||
	    !schema_read_times(m, schema, "maxLength", &most))
		return false;
	if (most < least)
		return schema_refuse(m, "maxLength",
				     json_object_get(schema, "maxLength"),
				     "at least minLength");
	grammar_add(m->g, rule, "\"%r\"",
		    grammar_repeat(m->g, m->json->character, least, most));
	return true;
}

/* Narrows [*least, *most] by one bound. */
static bool read_bound(struct maker *m, json_t *schema, const char *name,
		       bool lower, bool exclusive, int64_t *bound)
{
	json_t *x = json_object_get(schema, name);
	double v = json_number_value(x);

	if (!x)
		return true;
	if (!json_is_number(x) || !(fabs(v) <= (double)MOST_INTEGER))
		return schema_refuse(m, name, x,
				     "a number of at most 15 digits");
	v = lower ? (exclusive ? floor(v) + 1 : ceil(v)) :
		    (exclusive ? ceil(v) - 1 : floor(v));
	if (lower ? v > (double)*bound : v < (double)*bound)
		*bound = (int64_t)v;
	return true;
}

static bool add_integer(struct maker *m, json_t *schema, uint32_t rule)
{
	int64_t least = -(int64_t)MOST_INTEGER, most = MOST_INTEGER;

	if (!read_bound(m, schema, "minimum", true, false, &least) ||
	    !read_bound(m, schema, "exclusiveMinimum", true, true, &least) ||
	    !read_bound(m, schema, "maximum", false, false, &most) ||
	    !read_bound(m, schema, "exclusiveMaximum", false, true, &most))
		return false;
	if (least > most)
		return schema_refuse(m, "maximum",
				     json_object_get(schema, "maximum"),
				     "an integer between the bounds");
	grammar_add(m->g, rule, "%r", integer_add_range(m->g, least, most));
	return true;
}

/* Of any number only the type is known. */
static bool add_number(struct maker *m, json_t *schema, uint32_t rule)
{
	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++) {
		json_t *x = json_object_get(schema, keywords[i].name);
		if (x && keywords[i].about == IS_INTEGER)
			return schema_refuse(m, keywords[i].name, x,
					     "it only with the type integer");
	}
	grammar_add(m->g, rule, "%r", m->json->number);
	return true;
}

/* ---- a schema ---- */

/* "#" and what follows it of a JSON pointer (RFC 6901). */
static json_t *find_ref(const struct maker *m, const char *ref)
{
	json_t *at = *ref == '#' ? m->root : NULL;
	const char *s = ref + 1;

	while (at && *s == '/') {
		struct buf part = { 0 };
		for (s++; *s && *s != '/'; s++) {
			const bool escape = *s == '~' &&
					    (s[1] == '0' || s[1] == '1');
			buf_addc(&part, !escape ? *s : s[1] == '0' ? '~' : '/');
			s += escape;
		}
		at = json_is_array(at) ?
			     json_array_get(
				     at,
				     (size_t)atoi(part.data ? part.data : "")) :
			     json_object_get(at, part.data ? part.data : "");
		buf_fini(&part);
	}
	return *s ? NULL : at;
}

/* What a keyword that stands alone says. */
static bool add_decided(struct maker *m, json_t *schema, const char *keyword,
			json_t *x, unsigned type, uint32_t rule)
{
	json_t *list = x, *one, *target;
	uint32_t r;
	size_t i;

	if (!strcmp(keyword, "const")) {
		list = json_pack("[O]", x);
		bool good = add_enum(m, list, type, rule);
		json_decref(list);
		return good;
	}
	if (!strcmp(keyword, "enum"))
		return json_array_size(x) ?
			       add_enum(m, x, type, rule) :
			       schema_refuse(m, keyword, x, "a list of values");
	if (json_object_get(schema, "type"))
		return schema_refuse(m, "type", json_object_get(schema, "type"),
				     "none beside anyOf, allOf and $ref");
	if (!strcmp(keyword, "$ref")) {
		target = json_is_string(x) ? find_ref(m, json_string_value(x)) :
					     NULL;
		if (!target)
			return schema_refuse(m, keyword, x,
					     "a place in the schema as "
					     "\"#/$defs/name\"");
		if (!schema_make_rule(m, target, &r))
			return false;
		grammar_add(m->g, rule, "%r", r);
		return true;
	}
	if (!json_array_size(x) ||
	    (!strcmp(keyword, "allOf") && json_array_size(x) != 1))
		return schema_refuse(m, keyword, x,
				     *keyword == 'a' && keyword[1] == 'l' ?
					     "a list of one schema" :
					     "a list of schemas");
	json_array_foreach (list, i, one) {
		if (!schema_make_rule(m, one, &r))
			return false;
		grammar_add(m->g, rule, "%r", r);
	}
	return true;
}

/* The types that "type" names; all where there is none. */
static bool read_type(struct maker *m, json_t *schema, unsigned *type)
{
	json_t *x = json_object_get(schema, "type"), *one;
	const size_t n = json_is_array(x) ? json_array_size(x) : 1;

	*type = x ? 0 : IS_ANY;
	for (size_t i = 0; i < n && x; i++) {
		size_t k = 0;
		one = json_is_array(x) ? json_array_get(x, i) : x;
		while (k < ARRAY_SIZE(types) &&
		       (!json_is_string(one) ||
			strcmp(types[k].name, json_string_value(one))))
			k++;
		if (k == ARRAY_SIZE(types))
			return schema_refuse(m, "type", x,
					     "a type of JSON schemas");
		*type |= types[k].type;
	}
	return *type || schema_refuse(m, "type", x, "a type");
}

/* What its keywords are about, and the one that stands alone. */
static bool read_keywords(struct maker *m, json_t *schema, unsigned *about,
			  const char **decides)
{
	const char *key;
	json_t *x;

	*about = 0;
	*decides = NULL;
	json_object_foreach(schema, key, x)
	{
		size_t k = 0;
		while (k < ARRAY_SIZE(keywords) &&
		       strcmp(keywords[k].name, key))
			k++;
		if (k == ARRAY_SIZE(keywords))
			return schema_refuse(m, key, x,
					     "none: this is not supported");
		if (keywords[k].about == DECIDES && *decides)
			return schema_refuse(m, key, x, "it alone");
		if (keywords[k].about == DECIDES)
			*decides = keywords[k].name;
		else if (keywords[k].about < IS_ANY)
			*about |= keywords[k].about;
	}
	return !*decides || !*about ||
	       schema_refuse(m, *decides, json_object_get(schema, *decides),
			     "no keyword beside it that says more");
}

static bool add_types(struct maker *m, json_t *schema, unsigned type,
		      uint32_t rule)
{
	const struct {
		unsigned type;
		bool (*add)(struct maker *m, json_t *schema, uint32_t rule);
	} row[] = {
		{ IS_STRING, add_string },
		{ IS_NUMBER, add_number },
		{ IS_ARRAY, schema_add_array },
		{ IS_OBJECT, schema_add_object },
		{ IS_INTEGER, add_integer },
	};

	if (type & IS_NULL)
		grammar_add(m->g, rule, "null");
	if (type & IS_BOOLEAN)
		grammar_add(m->g, rule, "true");
	if (type & IS_BOOLEAN)
		grammar_add(m->g, rule, "false");
	if (type & IS_NUMBER) /* every integer is one */
		type &= ~(unsigned)IS_INTEGER;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (type & row[i].type && !row[i].add(m, schema, rule))
			return false;
	return m->g->elem.n < MOST_ELEMENTS ||
	       err_set(m->e, ERR_UNSUPPORTED, "the schema is too large");
}

bool schema_make_rule(struct maker *m, json_t *schema, uint32_t *rule)
{
	unsigned type, about;
	const char *decides;

	for (size_t i = 0; i < m->made.n; i++)
		if (m->made.v[i].schema == schema) {
			*rule = m->made.v[i].rule;
			return true;
		}
	if (json_is_true(schema)) {
		*rule = m->json->value;
		return true;
	}
	if (!json_is_object(schema))
		return err_set(m->e, ERR_INPUT,
			       "a schema is no object; wanted one, or true");
	*rule = grammar_add_rule(m->g);
	vec_push(&m->made, ((struct made){ schema, *rule }));
	if (!read_type(m, schema, &type) ||
	    !read_keywords(m, schema, &about, &decides))
		return false;
	if (decides)
		return add_decided(m, schema, decides,
				   json_object_get(schema, decides), type,
				   *rule);
	if (!json_object_get(schema, "type") && !about) {
		grammar_add(m->g, *rule, "%r", m->json->value);
		return true;
	}
	return add_types(m, schema,
			 json_object_get(schema, "type") ? type : about, *rule);
}

bool schema_add_rule(struct qwen_grammar *g, const struct json_rules *json,
		     json_t *schema, uint32_t *rule, struct err *e)
{
	struct maker m = { .g = g, .json = json, .root = schema, .e = e };
	bool good = schema_make_rule(&m, schema, rule);

	vec_fini(&m.made);
	return good;
}

struct qwen_grammar *qwen_grammar_schema(json_t *schema, struct err *e)
{
	struct qwen_grammar *g = xcalloc(1, sizeof(*g));
	struct json_rules json;
	uint32_t start;

	json_add_rules(g, &json);
	if (schema_add_rule(g, &json, schema, &start, e)) {
		if (grammar_finish(g, start))
			return g;
		err_set(e, ERR_INPUT,
			"no value satisfies the schema: each "
			"holds another, without end");
	}
	qwen_grammar_free(g);
	return NULL;
}
