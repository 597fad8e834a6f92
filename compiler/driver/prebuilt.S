/* The library's prebuilt objects (compiler/driver/object_cache.h), as t0-cc --pack wrote. */
	.section .rodata
	.balign	16
	.global	t0_pack, t0_pack_end
	.hidden	t0_pack, t0_pack_end
t0_pack:
	.incbin	T0_PACK
t0_pack_end:
	.section .note.GNU-stack, "", @progbits
