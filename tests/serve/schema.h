/*
 * tests/serve/schema.h - does a value satisfy a JSON schema?  Written from the
 * specification (2020-12), for the keywords that random schemas here have; and
 * those schemas.
 */
#ifndef T0_TESTS_SERVE_SCHEMA_H
#define T0_TESTS_SERVE_SCHEMA_H

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static inline bool is_valid(json_t *root, json_t *s, json_t *v);

static inline bool has_type(const char *type, json_t *v)
{
	if (!strcmp(type, "integer"))
		return json_is_integer(v) ||
		       (json_is_real(v) &&
			json_real_value(v) == floor(json_real_value(v)));
	return (!strcmp(type, "number") && json_is_number(v)) ||
	       (!strcmp(type, "string") && json_is_string(v)) ||
	       (!strcmp(type, "boolean") && json_is_boolean(v)) ||
	       (!strcmp(type, "null") && json_is_null(v)) ||
	       (!strcmp(type, "array") && json_is_array(v)) ||
	       (!strcmp(type, "object") && json_is_object(v));
}

static inline size_t count_characters(json_t *v)
{
	size_t n = 0;

	for (const char *s = json_string_value(v); *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* One keyword; those that are not known make nothing valid. */
static inline bool obeys(json_t *root, json_t *s, const char *key, json_t *k,
			 json_t *v)
{
	const double x = json_number_value(k), got = json_number_value(v);
	json_t *one, *of = json_object_get(s, "properties"),
		     *prefix = json_object_get(s, "prefixItems");
	const char *name;
	size_t i, n = 0;

	if (!strcmp(key, "type")) {
		if (json_is_string(k))
			return has_type(json_string_value(k), v);
		json_array_foreach (k, i, one)
			n += has_type(json_string_value(one), v);
		return n;
	}
	if (!strcmp(key, "enum") || !strcmp(key, "anyOf")) {
		json_array_foreach (k, i, one)
			n += *key == 'e' ? json_equal(one, v) :
					   is_valid(root, one, v);
		return n;
	}
	if (!strcmp(key, "const"))
		return json_equal(k, v);
	if (!strcmp(key, "$ref"))
		return is_valid(
			root,
			strcmp(json_string_value(k), "#") ?
				json_object_get(
					json_object_get(root, "$defs"),
					strrchr(json_string_value(k), '/') +
						1) :
				root,
			v);
	if (!strcmp(key, "minLength") || !strcmp(key, "maxLength"))
		return !json_is_string(v) ||
		       (key[1] == 'i' ? (double)count_characters(v) >= x :
					(double)count_characters(v) <= x);
	if (!strcmp(key, "minimum"))
		return !json_is_number(v) || got >= x;
	if (!strcmp(key, "maximum"))
		return !json_is_number(v) || got <= x;
	if (!strcmp(key, "exclusiveMinimum"))
		return !json_is_number(v) || got > x;
	if (!strcmp(key, "exclusiveMaximum"))
		return !json_is_number(v) || got < x;
	if (!strcmp(key, "minItems") || !strcmp(key, "maxItems"))
		return !json_is_array(v) ||
		       (key[1] == 'i' ? (double)json_array_size(v) >= x :
					(double)json_array_size(v) <= x);
	if (!strcmp(key, "prefixItems") || !strcmp(key, "items")) {
		const size_t first = *key == 'i' ? json_array_size(prefix) : 0;
		json_array_foreach (v, i, one) {
			json_t *rule = *key == 'i' ? k : json_array_get(k, i);
			if (i >= first && rule && !is_valid(root, rule, one))
				return false;
		}
		return true;
	}
	if (!strcmp(key, "required")) {
		json_array_foreach (k, i, one)
			if (json_is_object(v) &&
			    !json_object_get(v, json_string_value(one)))
				return false;
		return true;
	}
	if (!strcmp(key, "properties") ||
	    !strcmp(key, "additionalProperties")) {
		json_object_foreach(v, name, one)
		{
			json_t *rule = *key == 'p' ? json_object_get(k, name) :
				       json_object_get(of, name) ? NULL :
								   k;
			if (rule && !is_valid(root, rule, one))
				return false;
		}
		return true;
	}
	return !strcmp(key, "$defs") || !strcmp(key, "title");
}

static inline bool is_valid(json_t *root, json_t *s, json_t *v)
{
	const char *key;
	json_t *k;

	if (json_is_boolean(s))
		return json_is_true(s);
	json_object_foreach(s, key,
			    k) if (!obeys(root, s, key, k, v)) return false;
	return true;
}

/* ---- random ones ---- */

static inline uint32_t below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(random_next(seed) % n);
}

static inline json_t *random_integer(uint64_t *seed)
{
	json_t *s = json_pack("{s:s}", "type", "integer");
	const int64_t wide[] = { 1, 10, 130, 99999, 100000000000000 };
	const int64_t span = wide[below(seed, 5)];
	const int64_t at =
		(int64_t)(random_next(seed) % (uint64_t)(2 * span)) - span;

	if (below(seed, 2))
		json_object_set_new(
			s, below(seed, 2) ? "minimum" : "exclusiveMinimum",
			json_integer(at));
	if (below(seed, 2))
		json_object_set_new(
			s, below(seed, 2) ? "maximum" : "exclusiveMaximum",
			json_integer(at + 2 + (int64_t)below(seed, 300)));
	return s;
}

static inline json_t *random_schema(uint64_t *seed, int depth);

static inline json_t *random_object(uint64_t *seed, int depth)
{
	static const char *const name[] = { "a",	"ab", "abc",	  "b\"",
					    "\xc3\xa4", "",   "some name" };
	json_t *p = json_object(), *required = json_array(), *s;

	for (size_t i = 0; i < 7; i++) {
		if (below(seed, 2))
			continue;
		json_object_set_new(p, name[i], random_schema(seed, depth - 1));
		if (below(seed, 2))
			json_array_append_new(required, json_string(name[i]));
	}
	s = json_pack("{s:s,s:o,s:o}", "type", "object", "properties", p,
		      "required", required);
	switch (below(seed, 4)) {
	case 0:
		json_object_set_new(s, "additionalProperties", json_false());
		break;
	case 1:
		json_object_set_new(s, "additionalProperties",
				    random_schema(seed, depth - 1));
		break;
	case 2:
		json_object_set_new(s, "additionalProperties", json_true());
		break;
	}
	return s;
}

static inline json_t *random_array(uint64_t *seed, int depth)
{
	json_t *s = json_pack("{s:s}", "type", "array"), *list = json_array();
	const uint32_t least = below(seed, 4), n = below(seed, 3);

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(list, random_schema(seed, depth - 1));
	if (n)
		json_object_set(s, "prefixItems", list);
	json_decref(list);
	if (below(seed, 2))
		json_object_set_new(s, "items", random_schema(seed, depth - 1));
	if (below(seed, 2))
		json_object_set_new(s, "minItems", json_integer(least));
	if (below(seed, 2))
		json_object_set_new(s, "maxItems",
				    json_integer(least + below(seed, 3)));
	return s;
}

static inline json_t *random_schema(uint64_t *seed, int depth)
{
	static const char *const plain[] = { "null", "boolean", "number",
					     "string" };
	const uint32_t least = below(seed, 3);

	switch (below(seed, depth > 0 ? 10 : 5)) {
	case 0:
		return random_integer(seed);
	case 1:
		return json_pack("{s:s,s:i,s:i}", "type", "string", "minLength",
				 least, "maxLength", least + below(seed, 5));
	case 2:
		return json_pack("{s:[i,s,n,{s:[b]},f]}", "enum", 7,
				 "\xe2\x82\xac\n", "x", true, 2.5);
	case 3:
		return json_pack("{s:s,s:s}", "type", plain[below(seed, 4)],
				 "title", "x");
	case 4:
		return json_pack("{s:[s,s]}", "type", "null", "integer");
	case 5:
		return json_pack("{s:[o,o]}", "anyOf",
				 random_schema(seed, depth - 1),
				 random_schema(seed, depth - 1));
	case 6:
		return below(seed, 2) ? json_object() :
					json_pack("{s:s}", "$ref", "#/$defs/d");
	case 7:
		return random_array(seed, depth);
	default:
		return random_object(seed, depth);
	}
}

/* With a definition that holds itself. */
static inline json_t *random_root(uint64_t *seed)
{
	json_t *s = random_object(seed, 3);

	json_object_set_new(s, "$defs",
			    json_pack("{s:{s:s,s:{s:{s:s},s:{s:s}},s:[s]}}",
				      "d", "type", "object", "properties",
				      "next", "$ref", "#/$defs/d", "v", "type",
				      "boolean", "required", "v"));
	return s;
}

#endif
