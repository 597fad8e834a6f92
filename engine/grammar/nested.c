/*
 * engine/grammar/nested.c - schemas of arrays and objects as rules.
 */
#include "engine/grammar/grammar_int.h"

/* ---- arrays ---- */

static bool read_items(struct maker *m, json_t *schema, uint32_t *least,
		       uint32_t *most)
{
	json_t *prefix = json_object_get(schema, "prefixItems"),
	       *items = json_object_get(schema, "items");

	*least = 0;
	*most = json_is_false(items) ? (uint32_t)json_array_size(prefix) :
				       UINT32_MAX;
	if (prefix &&
	    (!json_is_array(prefix) || json_array_size(prefix) > MOST_TIMES))
		return schema_refuse(m, "prefixItems", prefix,
				     "a list of schemas");
	if (!schema_read_times(m, schema, "minItems", least) ||
	    !schema_read_times(m, schema, "maxItems", most))
		return false;
	if (json_is_false(items) && *most > json_array_size(prefix))
		*most = (uint32_t)json_array_size(prefix);
	return *least <= *most ||
	       schema_refuse(m, "minItems", json_object_get(schema, "minItems"),
			     "no more than there may be");
}

/* Item i of them. */
static bool make_item(struct maker *m, json_t *schema, uint32_t i,
		      uint32_t *rule)
{
	json_t *prefix = json_object_get(schema, "prefixItems"),
	       *items = json_object_get(schema, "items"),
	       *own = json_array_get(prefix, i);

	return schema_make_rule(m,
				own   ? own :
				items ? items :
					json_true(),
				rule);
}

/* Rules of what follows i items, from the last to the first. */
bool schema_add_array(struct maker *m, json_t *schema, uint32_t rule)
{
	const uint32_t space = m->json->space;
	uint32_t least, most, end, next = 0, item;

	if (!read_items(m, schema, &least, &most))
		return false;
	end = (uint32_t)json_array_size(json_object_get(schema, "prefixItems"));
	end = most != UINT32_MAX ? most : end > least ? end : least;
	end = end ? end : 1;
	for (uint32_t i = end; i; i--) {
		const uint32_t r = grammar_add_rule(m->g);
		next = i == end ? r : next; /* if there is one: again */
		if (i >= least)
			grammar_add(m->g, r, "%r]", space);
		if (i < most && !make_item(m, schema, i, &item))
			return false;
		if (i < most)
			grammar_add(m->g, r, "%r,%r%r%r", space, space, item,
				    next);
		next = r;
	}
	if (!least)
		grammar_add(m->g, rule, "[%r]", space);
	if (most && !make_item(m, schema, 0, &item))
		return false;
	if (most)
		grammar_add(m->g, rule, "[%r%r%r", space, item, next);
	return true;
}

/* ---- objects ---- */

struct object {
	json_t *properties, *required, *others; /* NULL: none */
	uint32_t other; /* a pair of those that have no name, or NO_RULE */
};
#define NO_RULE UINT32_MAX

/*
 * What follows a name's first bytes, ASCII, to its quotation mark, where it may
 * be none of the properties; `any` follows where it is none for certain.
 */
static uint32_t add_other_name(struct maker *m, json_t *properties,
			       const char *begun, uint32_t any)
{
	const uint32_t r = grammar_add_rule(m->g);
	const size_t n = strlen(begun);
	bool taken[256] = { false };
	char *longer = xcalloc(n + 2, 1);
	struct seq s = { 0 };
	const char *key;
	json_t *x;

	if (m->g->elem.n >= MOST_ELEMENTS) { /* the schema is refused */
		free(longer);
		return any;
	}
	memcpy(longer, begun, n);
	json_object_foreach(properties, key, x) if (!strncmp(key, begun, n))
		taken[(unsigned char)key[n]] = true;
	if (!taken[0])
		grammar_add(m->g, r, "\"");
	for (int c = ' '; c < 127; c++) {
		if (c == '"' || c == '\\')
			continue;
		longer[n] = (char)c;
		seq_add_text(m->g, &s, longer + n, 1);
		seq_add_rule(&s, taken[c] ? add_other_name(m, properties,
							   longer, any) :
					    any);
		grammar_add_seq(m->g, r, &s);
	}
	free(longer);
	return r;
}

/* A pair with a name that no property has. */
static bool add_other(struct maker *m, struct object *o)
{
	const uint32_t any = grammar_add_rule(m->g), space = m->json->space;
	uint32_t value, name;

	if (!schema_make_rule(m, o->others, &value))
		return false;
	grammar_add(m->g, any, "\"");
	grammar_add(m->g, any, "%c%r", " !#-[]-~", any);
	name = add_other_name(m, o->properties, "", any);
	o->other = grammar_add_rule(m->g);
	grammar_add(m->g, o->other, "\"%r%r:%r%r", name, space, space, value);
	return true;
}

/* Others are written where a schema has them, or nothing has a name. */
static bool read_object(struct maker *m, json_t *schema, struct object *o)
{
	json_t *others = json_object_get(schema, "additionalProperties"), *x;
	size_t i;

	*o = (struct object){ json_object_get(schema, "properties"),
			      json_object_get(schema, "required"), others,
			      NO_RULE };
	if (o->properties && !json_is_object(o->properties))
		return schema_refuse(m, "properties", o->properties,
				     "an object of schemas");
	if (o->required && !json_is_array(o->required))
		return schema_refuse(m, "required", o->required,
				     "a list of names");
	if (others && !json_is_boolean(others) && !json_is_object(others))
		return schema_refuse(m, "additionalProperties", others,
				     "a schema");
	if (!others || json_is_true(others))
		o->others = json_object_size(o->properties) ? NULL :
							      json_true();
	else if (json_is_false(others))
		o->others = NULL;
	json_array_foreach (o->required, i, x)
		if (!json_is_string(x) ||
		    !json_object_get(o->properties, json_string_value(x)))
			return schema_refuse(m, "required", x,
					     "a name of \"properties\"");
	return true;
}

static bool is_required(const struct object *o, const char *name)
{
	json_t *x;
	size_t i;

	json_array_foreach (o->required, i, x)
		if (!strcmp(json_string_value(x), name))
			return true;
	return false;
}

/* A property, with what may be before it and what follows. */
static void add_property(struct maker *m, uint32_t rule, bool first,
			 const char *name, uint32_t value, uint32_t next)
{
	const uint32_t space = m->json->space;
	json_t *text = json_string(name);
	struct seq s = { 0 };

	if (!first) {
		seq_add_rule(&s, space);
		seq_add_text(m->g, &s, ",", 1);
		seq_add_rule(&s, space);
	}
	schema_add_literal(m, &s, text);
	seq_add_rule(&s, space);
	seq_add_text(m->g, &s, ":", 1);
	seq_add_rule(&s, space);
	seq_add_rule(&s, value);
	seq_add_rule(&s, next);
	grammar_add_seq(m->g, rule, &s);
	json_decref(text);
}

/*
 * Rules of what follows property i, where one was written (rest) and where none
 * was (bare), from the last to the first.
 */
bool schema_add_object(struct maker *m, json_t *schema, uint32_t rule)
{
	struct object o;
	const uint32_t space = m->json->space;
	uint32_t rest = grammar_add_rule(m->g), bare = grammar_add_rule(m->g);
	VEC(const char *) name = { 0 };
	const char *key;
	json_t *x;
	bool good = read_object(m, schema, &o) &&
		    (!o.others || add_other(m, &o));

	grammar_add(m->g, rest, "%r}", space);
	grammar_add(m->g, bare, "}");
	if (good && o.others) {
		grammar_add(m->g, rest, "%r,%r%r%r", space, space, o.other,
			    rest);
		grammar_add(m->g, bare, "%r%r", o.other, rest);
	}
	if (good)
		json_object_foreach(o.properties, key, x) vec_push(&name, key);
	for (size_t i = name.n; i-- > 0 && good;) {
		const uint32_t after = rest, none = bare;
		uint32_t value = 0;
		good = schema_make_rule(
			m, json_object_get(o.properties, name.v[i]), &value);
		rest = grammar_add_rule(m->g);
		bare = grammar_add_rule(m->g);
		add_property(m, rest, false, name.v[i], value, after);
		add_property(m, bare, true, name.v[i], value, after);
		if (is_required(&o, name.v[i]))
			continue;
		grammar_add(m->g, rest, "%r", after);
		grammar_add(m->g, bare, "%r", none);
	}
	grammar_add(m->g, rule, "{%r%r", space, bare);
	vec_fini(&name);
	return good;
}
