/*
 * co_write - objects to complete AMD HSA code objects.
 *
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
#ifndef T0_ISA_CO_WRITE_H
#define T0_ISA_CO_WRITE_H

#include "isa/object/obj.h"
#include "isa/object/co.h"

/* -------------------------------------------------------- co_write.c ---- */

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

/* Code from `offset` on comes from this line of the kernel's source. */
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

/* -------------------------------------------------------- co_debug.c ---- */

/* The kernel's line table (DWARF 5); `symbol` is its code. */
void co_debug_lines(struct isa_object *o, const struct co_build_kernel *k,
		    int symbol);

#endif
