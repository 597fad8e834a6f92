/*
 * co - AMD HSA code objects: the ELF files that hold compiled kernels.
 *
 * Purpose: turn bytes from any compiler (clang, Triton, ROCm, our own) into
 * what a loader, an emulator and a disassembler need: the target chip, the
 * loadable image, its relocations, and every kernel with its descriptor,
 * code range and argument metadata.  Read are ELF64 files with machine 224
 * (AMDGPU), OS ABI 64 (HSA) and ABI version 2, 3 or 4 (code object v4, v5, v6).
 *
 * Invariants after a successful co_parse():
 * - every range (segments, kernels, code, text sections, relocations) lies
 *   inside its segment and, where it has file bytes, inside `bytes`;
 * - segments are in ascending order of address and do not overlap;
 * - all strings are NUL-terminated UTF-8 without control characters;
 * - descriptors are aligned to 64 bytes and entries to 256, as the command
 *   processor needs them, and an entry lies in an executable segment;
 * - counts and sizes are within the CO_MAX_* limits below.
 * The file is never trusted: whatever it says is checked first, and a file
 * that lies gives ERR_INPUT with the place, what it says and what is allowed.
 *
 * Ownership: `bytes` stays the caller's, unchanged and readable until
 * co_fini(); everything else in struct co belongs to the struct and is freed
 * by co_fini().  A parsed struct co is only read afterwards, so several
 * threads may use one.
 *
 *	struct co co;
 *	if (!co_parse(&co, bytes, len, &e))
 *		return err_wrap(&e, "%s", path);
 *	const struct co_kernel *k = co_kernel_require(&co, "saxpy", &e);
 *	...
 *	co_image_build(&co, host, co.span_bytes, gpu_va, &e);
 *	packet.kernel_object = gpu_va + k->desc_off;
 *	co_fini(&co);
 */
#ifndef T0_ISA_CO_H
#define T0_ISA_CO_H

#include "base/base.h"

/* Limits; a file beyond one is refused with a message that names it. */
#define CO_MAX_FILE_BYTES (UINT64_C(1) << 30)
#define CO_MAX_SPAN_BYTES (UINT64_C(1) << 30) /* image in memory */
#define CO_MAX_SEGMENTS 64
#define CO_MAX_SECTIONS 65536
#define CO_MAX_SYMBOLS 262144
#define CO_MAX_RELOCS 1048576
#define CO_MAX_KERNELS 16384
#define CO_MAX_FORMATS 65536	    /* of printf */
#define CO_MAX_ARGS 1048576	    /* of all kernels together */
#define CO_MAX_NOTE_BYTES (16u << 20) /* metadata */
#define CO_MAX_KERNARG_BYTES 65536  /* by metadata or descriptor */

#define CO_DESCRIPTOR_BYTES 64
#define CO_PAGE_BYTES 4096 /* alignment of the image that objects expect */

/* What a kernel argument is (metadata `.value_kind`). */
enum co_arg_kind {
	CO_ARG_BY_VALUE,
	CO_ARG_GLOBAL_BUFFER,
	CO_ARG_DYNAMIC_SHARED_POINTER, /* u32 offset into LDS */
	CO_ARG_SAMPLER,
	CO_ARG_IMAGE,
	CO_ARG_PIPE,
	CO_ARG_QUEUE,
	/* From here on hidden: the runtime fills them (co_arg_is_hidden()). */
	CO_ARG_HIDDEN_GLOBAL_OFFSET_X,	   /* u64, work-items */
	CO_ARG_HIDDEN_GLOBAL_OFFSET_Y,
	CO_ARG_HIDDEN_GLOBAL_OFFSET_Z,
	CO_ARG_HIDDEN_NONE,		   /* a gap: leave zero */
	CO_ARG_HIDDEN_BLOCK_COUNT_X,	   /* u32, whole workgroups */
	CO_ARG_HIDDEN_BLOCK_COUNT_Y,
	CO_ARG_HIDDEN_BLOCK_COUNT_Z,
	CO_ARG_HIDDEN_GROUP_SIZE_X,	   /* u16, work-items */
	CO_ARG_HIDDEN_GROUP_SIZE_Y,
	CO_ARG_HIDDEN_GROUP_SIZE_Z,
	CO_ARG_HIDDEN_REMAINDER_X,	   /* u16, of a partial last group */
	CO_ARG_HIDDEN_REMAINDER_Y,
	CO_ARG_HIDDEN_REMAINDER_Z,
	CO_ARG_HIDDEN_GRID_DIMS,	   /* u16: 1, 2 or 3 */
	CO_ARG_HIDDEN_PRINTF_BUFFER,
	CO_ARG_HIDDEN_HOSTCALL_BUFFER,
	CO_ARG_HIDDEN_MULTIGRID_SYNC_ARG,
	CO_ARG_HIDDEN_HEAP_V1,
	CO_ARG_HIDDEN_DEFAULT_QUEUE,
	CO_ARG_HIDDEN_COMPLETION_ACTION,
	CO_ARG_HIDDEN_DYNAMIC_LDS_SIZE,	   /* u32, bytes */
	CO_ARG_HIDDEN_PRIVATE_BASE,	   /* u32, upper half of the aperture */
	CO_ARG_HIDDEN_SHARED_BASE,
	CO_ARG_HIDDEN_QUEUE_PTR,	   /* u64 */
	CO_ARG_UNKNOWN,			   /* a kind this build does not know */
	CO_ARG_N
};

/*
 * The addressed memory of a pointer (metadata `.address_space`).  The values
 * are ours; CO_SPACE_NONE means that the metadata does not say.
 */
enum co_space {
	CO_SPACE_NONE,
	CO_SPACE_PRIVATE,
	CO_SPACE_GLOBAL,
	CO_SPACE_CONSTANT,
	CO_SPACE_LOCAL,
	CO_SPACE_GENERIC,
	CO_SPACE_REGION
};

struct co_arg {
	const char *name;      /* "" when the compiler did not keep it */
	const char *type_name; /* "float*", "" likewise */
	const char *kind_name; /* the metadata's own word for `kind` */
	enum co_arg_kind kind;
	enum co_space space;
	uint32_t offset;       /* in the kernarg segment, bytes */
	uint32_t size;	       /* bytes */
	uint32_t pointee_align; /* of a dynamic LDS pointer, 0 = not given */
	bool is_const, is_restrict, is_volatile;
};

/*
 * The kernel descriptor, 64 bytes at `<name>.kd`, as the command processor
 * reads it.  The bit fields of rsrc1/2/3 and properties are in
 * CO_RSRC1_... below; co_desc_*() decode the ones that need arithmetic.
 */
struct co_descriptor {
	uint32_t group_segment_bytes;	/* LDS, static part */
	uint32_t private_segment_bytes; /* scratch per work-item */
	uint32_t kernarg_bytes;
	int64_t entry_offset;		/* from the descriptor to the code */
	uint32_t rsrc1, rsrc2, rsrc3;	/* COMPUTE_PGM_RSRC1..3 */
	uint16_t properties;
};

/* properties */
#define CO_PROP_PRIVATE_SEGMENT_BUFFER (1u << 0) /* 4 SGPRs; not on gfx11 */
#define CO_PROP_DISPATCH_PTR (1u << 1)		 /* 2 SGPRs */
#define CO_PROP_QUEUE_PTR (1u << 2)		 /* 2 */
#define CO_PROP_KERNARG_SEGMENT_PTR (1u << 3)	 /* 2 */
#define CO_PROP_DISPATCH_ID (1u << 4)		 /* 2 */
#define CO_PROP_FLAT_SCRATCH_INIT (1u << 5)	 /* 2; not on gfx11 */
#define CO_PROP_PRIVATE_SEGMENT_SIZE (1u << 6)	 /* 1 */
#define CO_PROP_WAVEFRONT_SIZE32 (1u << 10)
#define CO_PROP_DYNAMIC_STACK (1u << 11)

struct co_kernel {
	const char *name;   /* "saxpy" */
	const char *symbol; /* "saxpy.kd" */
	uint64_t desc_vaddr;  /* address of the descriptor in the ELF */
	uint64_t desc_off;    /* the same from the start of the image */
	uint64_t entry_vaddr; /* first instruction */
	uint64_t entry_off;
	/*
	 * Bytes of code from the entry: the size of the function's symbol, or,
	 * when there is none, up to the end of its segment's file bytes.
	 */
	uint64_t code_bytes;
	const uint8_t *code; /* into `bytes` */
	struct co_descriptor desc;

	/* From the metadata; all 0 or NULL when has_metadata is false. */
	bool has_metadata;
	const struct co_arg *args; /* ascending by offset, hidden ones too */
	uint32_t n_args;
	uint32_t n_user_args; /* those that are not hidden */
	uint32_t kernarg_bytes, kernarg_align;
	uint32_t group_segment_bytes, private_segment_bytes;
	uint32_t wave_size; /* 32 or 64; from the descriptor when not given */
	uint32_t sgpr_count, vgpr_count, sgpr_spills, vgpr_spills;
	uint32_t max_flat_workgroup_size; /* 0 = not given */
	uint32_t reqd_workgroup_size[3];  /* all 0 = not given */
	bool uses_dynamic_stack, workgroup_processor_mode;
	const char *language; /* "OpenCL C", "" when not given */
	uint32_t language_version[2];
};

struct co_segment { /* one PT_LOAD */
	uint64_t vaddr, offset, filesz, memsz;
	uint32_t flags; /* PF_R 4, PF_W 2, PF_X 1 */
};

/* ELF relocation types of machine 224 that the dynamic loader meets. */
enum co_reloc_type {
	CO_RELOC_NONE = 0,
	CO_RELOC_ABS32_LO = 1,
	CO_RELOC_ABS32_HI = 2,
	CO_RELOC_ABS64 = 3,
	CO_RELOC_REL32 = 4,
	CO_RELOC_REL64 = 5,
	CO_RELOC_ABS32 = 6,
	CO_RELOC_REL32_LO = 10,
	CO_RELOC_REL32_HI = 11,
	CO_RELOC_RELATIVE64 = 13
};

struct co_reloc {
	uint64_t vaddr; /* of the place to patch */
	uint32_t type;	/* enum co_reloc_type */
	int64_t addend;
	uint64_t symbol_vaddr; /* 0 for RELATIVE64 and NONE */
	const char *symbol;    /* "" when there is none */
	bool absolute;	       /* symbol_vaddr does not move with the image */
	bool undefined;	       /* co_image_build() refuses it */
};

struct co_symbol {
	const char *name;
	uint64_t vaddr, size_bytes;
	uint8_t type;	 /* STT_OBJECT 1, STT_FUNC 2, ... */
	uint8_t binding; /* STB_LOCAL 0, STB_GLOBAL 1, STB_WEAK 2 */
};

struct co_text { /* one executable section */
	const char *name;
	uint64_t vaddr, size_bytes;
	const uint8_t *data; /* into the caller's bytes */
};

struct co {
	const uint8_t *bytes; /* the caller's */
	size_t len;

	const char *chip;     /* "gfx1100", "gfx11-generic" */
	int version;	      /* code object version: 4, 5 or 6 */
	int abi_version;      /* e_ident[8]: 2, 3 or 4 */
	uint32_t e_flags;
	const char *target;   /* metadata's amdhsa.target, "" when absent */
	bool has_metadata;
	/* amdhsa.printf as it stands: "ID:ARGS:BYTES...:FORMAT", escaped. */
	const char *const *printf_formats;
	uint32_t n_printf_formats;

	/*
	 * The image: span_vaddr..span_vaddr + span_bytes, whole pages: all
	 * segments and one page more, because the instruction prefetch runs
	 * past the last instruction and must not meet unmapped memory.  Offset
	 * 0 of the image is span_vaddr (0 in all objects that linkers make).
	 */
	uint64_t span_vaddr, span_bytes;

	const struct co_segment *segments; /* ascending, disjoint */
	uint32_t n_segments;
	const struct co_text *texts; /* in the order of the section table */
	uint32_t n_texts;
	const struct co_symbol *symbols; /* by name; defined, in the image */
	uint32_t n_symbols;
	const struct co_reloc *relocs;
	uint32_t n_relocs;
	const struct co_kernel *kernels; /* by name */
	uint32_t n_kernels;

	struct arena mem;
};

/* -------------------------------------------------------------- co.c ---- */

/*
 * Parse `len` bytes.  On false *co is empty (co_fini() is allowed) and *e says
 * why: ERR_INPUT for a malformed file, ERR_UNSUPPORTED for a sound one of
 * another kind (another machine, an old code object version, a bundle).
 */
bool co_parse(struct co *co, const void *bytes, size_t len, struct err *e);
void co_fini(struct co *co);

/* By name, with or without ".kd"; NULL when there is none. */
const struct co_kernel *co_kernel_find(const struct co *co, const char *name);
/* As co_kernel_find(), with an error that lists the kernels there are. */
const struct co_kernel *co_kernel_require(const struct co *co,
					  const char *name, struct err *e);

/* The explicit argument number `index`, from 0; NULL when there is none. */
const struct co_arg *co_user_arg(const struct co_kernel *k, int index);

/* The symbol of that name, NULL when there is none. */
const struct co_symbol *co_symbol_find(const struct co *co, const char *name);
/* The symbol whose range holds `vaddr` (the innermost), or NULL. */
const struct co_symbol *co_symbol_at(const struct co *co, uint64_t vaddr);

/* -------------------------------------------------------- co_image.c ---- */

/*
 * Write the image to `dst`, which has `size_bytes` (>= span_bytes) and will be
 * seen by the GPU at `base_va`: copies the segments, zeroes the rest of dst,
 * applies the relocations.  A vaddr of the file is then at
 * base_va + (vaddr - span_vaddr).
 */
bool co_image_build(const struct co *co, void *dst, size_t size_bytes,
		    uint64_t base_va, struct err *e);

/*
 * Find the object for `chip` ("gfx1100") in a clang offload bundle
 * ("__CLANG_OFFLOAD_BUNDLE__").  Bytes that are no bundle are passed through.
 * *out points into `bytes`.
 */
bool co_unbundle(const void *bytes, size_t len, const char *chip,
		 const void **out, size_t *out_len, struct err *e);

/* --------------------------------------------------------- co_meta.c ---- */

bool co_arg_is_hidden(const struct co_arg *a);
/* "global_buffer", ...; "unknown" for CO_ARG_UNKNOWN. */
const char *co_arg_kind_name(enum co_arg_kind kind);

/* --------------------------------------------------------- co_desc.c ---- */

/* "gfx1100" for the low byte of e_flags; NULL for a number not assigned. */
const char *co_chip_name(uint32_t e_flags);

/* 64 bytes as they lie in memory -> fields. */
void co_descriptor_decode(const uint8_t bytes[CO_DESCRIPTOR_BYTES],
			  struct co_descriptor *d);
/* 32 or 64. */
int co_descriptor_wave_size(const struct co_descriptor *d);
/* VGPRs per lane that the wave may use, from rsrc1 (gfx10 and later). */
int co_descriptor_vgprs(const struct co_descriptor *d);
/* rsrc2 bits 5:1: SGPRs that the packet processor loads before the ids. */
int co_descriptor_user_sgprs(const struct co_descriptor *d);

#endif
