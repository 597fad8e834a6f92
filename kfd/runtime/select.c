/*
 * kfd/runtime/select.c - device selection: by number, version or unique id,
 * among the visible GPUs.
 *
 * Numbers count all GPU nodes, gfx11 or not, so that `kfd:N` means the same
 * card whichever of them T0 can use.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kfd/runtime/runtime.h"
#include "kfd/soft/soft.h"

#define NO_GPU "4294967295" /* a number that none has */

const char *kfd_spec(const char *device, const char *visible, char out[256])
{
	/*
	 * A card in software that is the only one is not among what a filter
	 * hides: it was asked for.
	 */
	const bool filter = visible && *visible &&
			    !(soft_spec_is(device) && !strchr(device, '*'));

	snprintf(out, 256, "%s%s%s", device ? device : "", filter ? "@" : "",
		 filter ? visible : "");
	return out;
}

static bool parse_hex(const char *s, uint64_t *out)
{
	char *end;

	if (!*s || *s == '-' || *s == '+')
		return false;
	*out = strtoull(s, &end, 16);
	return !*end;
}

/* "0x..." and the vendor's "GPU-...". */
static bool parse_uid(const char *s, uint64_t *out)
{
	if (!strncmp(s, "0x", 2))
		return parse_hex(s + 2, out);
	return !strncmp(s, "GPU-", 4) && parse_hex(s + 4, out);
}

/* An entry of the vendor's list as one of ours; false: it is none. */
static bool rocr_entry(const char *p, size_t len, char out[32])
{
	char text[32], *end;
	uint64_t uid;
	long n;

	while (len && *p == ' ')
		p++, len--;
	while (len && p[len - 1] == ' ')
		len--;
	/* "GPU-" and 16 digits are the longest. */
	if (!len || len > 20)
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)len, p);
	if (!strncasecmp(text, "GPU-", 4)) {
		snprintf(out, 32, "GPU-%s", text + 4);
		return parse_hex(text + 4, &uid);
	}
	n = strtol(text, &end, 0); /* as in C: hexadecimal and octal, too */
	snprintf(out, 32, "%ld", n);
	return !*end && n >= 0;
}

/*
 * The vendor's list, as its runtime reads it: up to the first entry that is
 * neither a number nor a unique id; one without any leaves no GPU.
 */
static const char *rocr_list(const char *list, char out[192])
{
	size_t n = 0;

	for (const char *p = list; *p;) {
		const size_t len = strcspn(p, ",");
		char entry[32];

		if (!rocr_entry(p, len, entry) ||
		    n + strlen(entry) + 2 > 192)
			break;
		n += (size_t)sprintf(out + n, "%s%s", n ? "," : "", entry);
		p += len + (p[len] == ',');
	}
	return n ? out : NO_GPU;
}

const char *kfd_spec_asked(const char *option, char out[256])
{
	const char *visible = getenv("T0_VISIBLE_DEVICES");
	const char *rocr = getenv("ROCR_VISIBLE_DEVICES");
	char list[192];

	if (!visible && rocr)
		visible = rocr_list(rocr, list);
	return kfd_spec(option ? option : getenv("T0_DEVICE"), visible, out);
}

/* Of gfx11, or another chip that there is in software, too. */
bool kfd_node_is_usable(const struct kfd_node *n)
{
	const struct isa_chip *chip = isa_chip_of_target(n->gfx_target);

	return n->gpu_id && (n->gfx_target / 10000 == 11 ||
			     (chip && soft_has_chip(chip)));
}

/* The part after "kfd". */
static bool parse_choice(const char *s, struct kfd_select *sel)
{
	uint64_t n;

	if (!*s)
		return true;
	if (*s++ != ':')
		return false;
	if (parse_uid(s, &sel->uid)) {
		sel->by = SELECT_UID;
		return true;
	}
	if (!strncmp(s, "gfx", 3) && strlen(s) < sizeof(sel->gfx)) {
		sel->by = SELECT_GFX;
		memcpy(sel->gfx, s, strlen(s) + 1);
		return true;
	}
	if (!cli_u64(s, &n, NULL) || n > 1000)
		return false;
	sel->by = SELECT_NUMBER;
	sel->number = (int)n;
	return true;
}

bool kfd_select_parse(const char *spec, struct kfd_select *sel, struct err *e)
{
	const char *rest;
	char kind[256];

	*sel = (struct kfd_select){ .by = SELECT_FIRST };
	if (!spec)
		spec = "";
	const size_t len = strcspn(spec, "@");
	snprintf(kind, sizeof(kind), "%.*s", (int)(len < 255 ? len : 255),
		 spec);
	snprintf(sel->visible, sizeof(sel->visible), "%s",
		 spec[len] ? spec + len + 1 : "");
	sel->any = !*kind;
	sel->soft = soft_spec_is(kind);
	rest = kind + strlen("kfd");
	if (sel->soft && !soft_spec_parse(kind, &sel->machine, &rest, e))
		return false;
	if (sel->any || ((sel->soft || !strncmp(kind, "kfd", 3)) &&
			 parse_choice(rest, sel)))
		return true;
	return err_set(e, ERR_USAGE,
		       "device \"%s\": wanted soft, kfd, or "
		       "soft[:CHIP][*N] for N cards of a chip; "
		       "which of several: kfd:N, kfd:gfx1100 or "
		       "kfd:0x<unique id>, also after soft*N (see t0-device "
		       "list)",
		       kind);
}

static int gpus_of(const struct kfd_topology *t, struct gpu *out)
{
	int n = 0;

	for (int i = 0; i < t->n_nodes && n < GPUS_MAX; i++) {
		if (!t->node[i].gpu_id)
			continue;
		out[n] = (struct gpu){ &t->node[i], n };
		n++;
	}
	return n;
}

/* Take the GPU of an entry; false: there is none, or it is taken already. */
static bool take_visible(const struct gpu *all, int n, bool by_uid,
			 uint64_t want, struct gpu *out, int *n_out)
{
	for (int i = 0; i < n; i++) {
		if (by_uid ? all[i].node->unique_id != want :
			     (uint64_t)i != want)
			continue;
		for (int k = 0; k < *n_out; k++)
			if (out[k].node == all[i].node)
				return false;
		out[(*n_out)++] = all[i];
		return true;
	}
	return false;
}

/*
 * The entries of the list, in its order, up to the first that is no GPU's or
 * one's again, as the vendor's runtime has it; *n_out of them.
 */
static bool filter_visible(const struct kfd_select *sel, const struct gpu *all,
			   int n, struct gpu *out, int *n_out, struct err *e)
{
	char list[sizeof(sel->visible)], *save, *s;
	bool more = true;

	*n_out = 0;
	snprintf(list, sizeof(list), "%s", sel->visible);
	for (s = strtok_r(list, ",", &save); s;
	     s = strtok_r(NULL, ",", &save)) {
		uint64_t want, by_uid = parse_uid(s, &want);

		if (!by_uid && !cli_u64(s, &want, NULL))
			return err_set(e, ERR_USAGE,
				       "visible devices \"%s\": '%s' is "
				       "neither a number nor 0x<unique id>",
				       sel->visible, s);
		more = more && take_visible(all, n, by_uid, want, out, n_out);
	}
	return true;
}

static bool is_selected(const struct kfd_select *sel, const struct gpu *g,
			int i)
{
	char gfx[16];

	switch (sel->by) {
	case SELECT_NUMBER:
		return i == sel->number;
	case SELECT_UID:
		return g->node->unique_id == sel->uid;
	case SELECT_GFX:
		kfd_gfx_name(g->node->gfx_target, gfx);
		return !strcmp(gfx, sel->gfx);
	default:
		return kfd_node_is_usable(g->node);
	}
}

static const char *describe_wanted(const struct kfd_select *sel, char out[48])
{
	switch (sel->by) {
	case SELECT_NUMBER:
		return "GPU of that number";
	case SELECT_UID:
		snprintf(out, 48, "GPU with unique id 0x%llx",
			 (unsigned long long)sel->uid);
		return out;
	case SELECT_GFX:
		snprintf(out, 48, "%s GPU", sel->gfx);
		return out;
	default:
		return "gfx11 GPU";
	}
}

static bool set_none_error(const struct kfd_select *sel,
			   const struct kfd_topology *t, const struct gpu *all,
			   int n, struct err *e)
{
	char gfx[16], what[48], kind[16] = "kfd";
	struct buf seen = { 0 };
	int hidden = 0;

	if (sel->soft)
		snprintf(kind, sizeof(kind), "soft*%u",
			 sel->machine.cards ? sel->machine.cards : 1);

	for (int i = 0; i < t->n_nodes; i++)
		hidden += t->node[i].hidden;
	for (int i = 0; i < n; i++) {
		kfd_gfx_name(all[i].node->gfx_target, gfx);
		buf_printf(&seen, "%s%s:%d is %s", i ? ", " : "", kind, i,
			   gfx);
	}
	err_set(e, ERR_NODEV, "no %s among the %d GPUs of %s (%s%s%s%s); %s",
		describe_wanted(sel, what), n,
		sel->soft ? "the machine in software" : KFD_PATH,
		n ? seen.data : "none",
		hidden ? "; some nodes are hidden by the device cgroup" : "",
		*sel->visible ? "; visible are only " : "", sel->visible,
		n || hidden ? "see t0-device list" :
			      "if a card is there, the kernel log says why it "
			      "was refused (\"PCI rejects atomics\"?)");
	buf_fini(&seen);
	return false;
}

bool kfd_select_gpus(const struct kfd_select *sel, const struct kfd_topology *t,
		     struct gpu *out, int *n_out, struct err *e)
{
	struct gpu all[GPUS_MAX] = { 0 }, seen[GPUS_MAX];
	const int n = gpus_of(t, all);
	int n_seen = n;

	*n_out = 0;
	memcpy(seen, all, sizeof(all));
	if (*sel->visible && !filter_visible(sel, all, n, seen, &n_seen, e))
		return false;
	for (int i = 0; i < n_seen; i++)
		if (is_selected(sel, &seen[i], i))
			out[(*n_out)++] = seen[i];
	if (!*n_out)
		return set_none_error(sel, t, all, n, e);
	if (!kfd_node_is_usable(out[0].node)) {
		char gfx[16];

		kfd_gfx_name(out[0].node->gfx_target, gfx);
		return err_set(e, ERR_NODEV, "kfd:%d is %s; wanted gfx11, or "
			       "another chip of `t0-device list`",
			       out[0].number, gfx);
	}
	return true;
}
