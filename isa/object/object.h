/*
 * isa/object - AMD HSA code objects, the ELF files that hold compiled kernels:
 * the manual.
 *
 * Three parts: struct co is a code object that was read; struct isa_object is a
 * relocatable object in memory, which an assembler makes; co_write() links the
 * latter to a code object, and co_build() does all of it for a compiler.
 *
 * Reading turns bytes from any compiler (clang, Triton, ROCm, our own) into
 * what a loader, an emulator and a disassembler need: the target chip, the
 * loadable image, its relocations, and every kernel with its descriptor,
 * code range and argument metadata.  Its input is ELF64 files with machine 224
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
#ifndef T0_ISA_OBJECT_H
#define T0_ISA_OBJECT_H

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
	const char *chip;   /* of its object; NULL: not known */
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

/* ELF relocation types of machine 224. */
enum co_reloc_type {
	CO_RELOC_NONE = 0,
	CO_RELOC_ABS32_LO = 1,
	CO_RELOC_ABS32_HI = 2,
	CO_RELOC_ABS64 = 3,
	CO_RELOC_REL32 = 4,
	CO_RELOC_REL64 = 5,
	CO_RELOC_ABS32 = 6,
	CO_RELOC_GOTPCREL = 7, /* as the next two: not left for the loader */
	CO_RELOC_GOTPCREL32_LO = 8,
	CO_RELOC_GOTPCREL32_HI = 9,
	CO_RELOC_REL32_LO = 10,
	CO_RELOC_REL32_HI = 11,
	CO_RELOC_RELATIVE64 = 13, /* made by the linker, for the loader */
	CO_RELOC_REL16 = 14, /* dwords, of branches; not for the loader */
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
	uint8_t visibility; /* STV_DEFAULT 0, HIDDEN 2, PROTECTED 3 */
};

struct co_text { /* one section of code or data */
	const char *name;
	uint64_t vaddr, size_bytes, align;
	bool writable;
	const uint8_t *data; /* into the caller's bytes; NULL: zeros (.bss) */
};

struct co {
	const uint8_t *bytes; /* the caller's */
	size_t len;

	const char *chip;     /* "gfx1100", "gfx11-generic" */
	int version;	      /* code object version: 4, 5 or 6 */
	int abi_version;      /* e_ident[8]: 2, 3 or 4 */
	uint32_t e_flags;
	const char *target;   /* metadata's amdhsa.target, "" when absent */
	const char *costs;    /* t0.costs: what T0's compiler went by; or "" */
	bool has_metadata;
	const uint8_t *metadata; /* MessagePack, into `bytes`; or NULL */
	size_t metadata_bytes;
	const uint8_t *notes; /* behind the metadata's: of other sources */
	size_t notes_bytes;
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
	const struct co_text *datas; /* likewise, with .got */
	uint32_t n_datas;
	const struct co_symbol *symbols; /* by name; defined, in the image */
	uint32_t n_symbols;
	const char *const *undefined; /* what .dynsym wants of others */
	uint32_t n_undefined;
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
/* Bytes of the arguments up to the last that is not hidden, and of all. */
uint32_t co_explicit_bytes(const struct co_kernel *k);
uint32_t co_kernarg_bytes(const struct co_kernel *k);

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
 * Find the object for `chip` (NULL: gfx1100), or for the generic target that it
 * runs, in a clang offload bundle
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

/* ------------------------------------------------------------- obj.c ---- */

/*
 * A relocatable object: what the assembler makes and the writer links.
 *
 * Sections hold bytes; symbols are places in them or numbers; relocations
 * patch bytes once all addresses are known (co_write()).  Numbers of sections
 * and symbols start at 1; 0 means none.
 *
 * Ownership: everything belongs to the object and is freed by
 * isa_object_fini().  Zero-initialise, then isa_object_init().
 */

/* Section flags and types, as in ELF. */
#define ISA_SHF_WRITE	 1u
#define ISA_SHF_ALLOC	 2u
#define ISA_SHF_EXEC	 4u
#define ISA_SHF_MERGE	 0x10u
#define ISA_SHF_STRINGS	 0x20u
/* Ours: not loaded, but kept in the code object, with addresses filled in. */
#define ISA_SHF_KEEP	 0x80000000u
#define ISA_SHT_PROGBITS 1u
#define ISA_SHT_NOTE	 7u
#define ISA_SHT_NOBITS	 8u

struct isa_section {
	const char *name;
	uint32_t type, flags;
	uint32_t entry_bytes; /* of mergeable sections */
	uint64_t align;	      /* power of two */
	struct buf data;      /* NOBITS: empty */
	uint64_t size_bytes;  /* == data.len unless NOBITS */
};

enum isa_symbol_where {
	ISA_SYM_UNDEFINED,
	ISA_SYM_ABSOLUTE,
	ISA_SYM_SECTION,
};

struct isa_symbol {
	const char *name;   /* "" for anonymous labels */
	uint8_t where;	    /* enum isa_symbol_where */
	uint8_t binding;    /* 0 local, 1 global, 2 weak */
	uint8_t type;	    /* 0 none, 1 object, 2 function */
	uint8_t visibility; /* 0 default, 1 internal, 2 hidden, 3 protected */
	int section;
	uint64_t value; /* offset in the section, or the number */
	uint64_t size_bytes;
};

struct isa_reloc {
	int section; /* whose bytes are patched */
	uint64_t offset;
	uint32_t type; /* enum co_reloc_type */
	int symbol;
	int64_t addend;
};

struct isa_object {
	const char *chip;	     /* "gfx1100" */
	int version;		     /* code object version 4, 5 or 6 */
	struct isa_section *section; /* [n_sections], number 1 is [0] */
	int n_sections, cap_sections;
	struct isa_symbol *symbol; /* [n_symbols], number 1 is [0] */
	int n_symbols, cap_symbols;
	struct isa_reloc *reloc;
	size_t n_relocs, cap_relocs;
	int *hash; /* [cap_hash] symbol numbers by name, 0 = empty */
	size_t cap_hash;
	struct buf metadata; /* MessagePack of the note; empty: no note */
	struct arena mem;    /* names */
};

/* ------------------------------------------------------------- obj.c ---- */

void isa_object_init(struct isa_object *o);
void isa_object_fini(struct isa_object *o);

/* The section of that name, added with these properties if it is new. */
int isa_object_section(struct isa_object *o, const char *name, int len,
		       uint32_t type, uint32_t flags);
static inline struct isa_section *isa_section_at(const struct isa_object *o,
						 int number)
{
	return &o->section[number - 1];
}
static inline struct isa_symbol *isa_symbol_at(const struct isa_object *o,
					       int number)
{
	return &o->symbol[number - 1];
}
/* The symbol of that name, undefined and local if it is new. */
int isa_object_symbol(struct isa_object *o, const char *name, int len);
/* The same, 0 if there is none. */
int isa_object_find(const struct isa_object *o, const char *name, int len);
/* A symbol without a name. */
int isa_object_anonymous(struct isa_object *o);
void isa_object_reloc(struct isa_object *o, const struct isa_reloc *r);

/* -------------------------------------------------------- co_write.c ---- */

/*
 * What a linker does for a GPU: sections get addresses, references between
 * them are patched, and what the loader must know is added: metadata note,
 * dynamic symbols with both hash tables, relocations that wait for the load
 * address, program headers.  Layout is that of common linkers:
 *
 *	R    .note .dynsym .gnu.hash .hash .dynstr .rela.dyn .rodata ...
 *	RX   .text                                  (256-byte aligned entries)
 *	RW   .data.rel.ro .dynamic .got             (read-only after loading)
 *	RW   .data .bss
 *
 * Sections that are not loaded are dropped, but for the symbol table and those
 * marked ISA_SHF_KEEP.
 */

/*
 * Append the ELF of *o, which is patched in place and must not be written
 * twice.  False for undefined symbols, references that need a fixed address,
 * and values out of range.
 */
bool co_write(struct isa_object *o, struct buf *out, struct err *e);

/* -------------------------------------------------------- co_build.c ---- */

/* A kernel argument for the metadata; strings may be NULL. */
struct co_build_arg {
	const char *name, *type_name;
	enum co_arg_kind kind;
	enum co_space space;
	uint32_t offset, size;
	bool is_const;
};

/* Line table row: code from `offset` on comes from this source line. */
struct co_build_line {
	uint32_t offset, line;
};

/* A kernel as a compiler has it. */
struct co_build_kernel {
	const char *name;
	const void *code;
	size_t code_bytes;
	int wave; /* 32 or 64 */
	/*
	 * entry_offset, the VGPR blocks and user SGPR count of rsrc1/2 and the
	 * wave bit of properties are filled in from what stands here.
	 */
	struct co_descriptor desc;
	uint32_t vgprs, sgprs; /* used, without VCC */
	uint32_t vgpr_spills, sgpr_spills;
	uint32_t max_flat_workgroup_size; /* 0: 1024 */
	uint32_t reqd_workgroup_size[3];  /* all 0: not given */
	const struct co_build_arg *arg;
	int n_args;
	const char *const *printf; /* entries "ID:N:BYTES...:FORMAT" */
	int n_printf;
	const char *costs; /* "t0.costs" of the metadata, or NULL */
	const char *source; /* file of the lines, or NULL */
	const struct co_build_line *line; /* ascending by offset */
	size_t n_lines;
};

/* Defaults of a descriptor: denormals on, WGP mode, workgroup id x. */
void co_build_descriptor(struct co_descriptor *d);

/* Kernels to a code object for `chip`; `version` is 4, 5 or 6. */
bool co_build(const char *chip, int version, const struct co_build_kernel *k,
	      int n_kernels, struct buf *out, struct err *e);

/* msgpack-c writes metadata; `pk` appends to `out`. */
struct msgpack_packer;
void co_pack_init(struct msgpack_packer *pk, struct buf *out);
void co_pack_string(struct msgpack_packer *pk, const char *s);
void co_pack_bool(struct msgpack_packer *pk, bool v);

#endif
