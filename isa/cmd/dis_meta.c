/*
 * isa/cmd/dis_meta.c - metadata as the .amdgpu_metadata that makes it.
 */
#include <ctype.h>
#include <inttypes.h>
#include <msgpack.h>
#include <string.h>

#include "isa/cmd/cmd.h"

static void put_object(FILE *out, const msgpack_object *o, int indent);

/* Would it be read as a string without a tag?  A short rule that is never
 * wrong when it says yes. */
static bool is_plain(const char *s, size_t len)
{
	static const char *const other[] = { "n",   "no",    "off", "false",
					     "nan", "y",     "yes", "on",
					     "inf", "true",  "infinity" };

	if (!len || !(isalpha((unsigned char)*s) || *s == '_' || *s == '.'))
		return false;
	if (*s == '.' && (len < 2 || isdigit((unsigned char)s[1])))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		if (strlen(other[i]) == len && !strncasecmp(s, other[i], len))
			return false;
	return true;
}

static void put_string(FILE *out, const char *s, size_t len)
{
	fputs(is_plain(s, len) ? "\"" : "!str \"", out);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = s[i];

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ' || c == 127)
			fprintf(out, "\\x%02x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

static void put_map(FILE *out, const msgpack_object_map *map, int indent)
{
	for (uint32_t i = 0; i < map->size; i++) {
		fprintf(out, "\n%*s", indent, "");
		put_object(out, &map->ptr[i].key, indent);
		fputs(": ", out);
		put_object(out, &map->ptr[i].val, indent + 2);
	}
}

/* Maps and lists begin on a line of their own, deeper by two. */
static void put_object(FILE *out, const msgpack_object *o, int indent)
{
	switch (o->type) {
	case MSGPACK_OBJECT_BOOLEAN:
		fputs(o->via.boolean ? "true" : "false", out);
		break;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		fprintf(out, "%" PRIu64, o->via.u64);
		break;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		fprintf(out, "%" PRId64, o->via.i64);
		break;
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		fprintf(out, "!float %.17g", o->via.f64);
		break;
	case MSGPACK_OBJECT_STR:
		put_string(out, o->via.str.ptr, o->via.str.size);
		break;
	case MSGPACK_OBJECT_MAP:
		if (!o->via.map.size)
			fputs("{}", out);
		put_map(out, &o->via.map, indent);
		break;
	case MSGPACK_OBJECT_ARRAY:
		if (!o->via.array.size)
			fputs("[]", out);
		for (uint32_t i = 0; i < o->via.array.size; i++) {
			fprintf(out, "\n%*s- ", indent, "");
			put_object(out, &o->via.array.ptr[i], indent + 2);
		}
		break;
	default:
		fputs("!nil nil", out);
	}
}

void isa_print_metadata(FILE *out, const struct co *co)
{
	msgpack_unpacked u;
	size_t at = 0;

	msgpack_unpacked_init(&u);
	if (msgpack_unpack_next(&u, (const char *)co->metadata,
				co->metadata_bytes,
				&at) == MSGPACK_UNPACK_SUCCESS) {
		fputs("\t.amdgpu_metadata\n---", out);
		put_object(out, &u.data, 0);
		fputs("\n...\n\t.end_amdgpu_metadata\n", out);
	}
	msgpack_unpacked_destroy(&u);
}
