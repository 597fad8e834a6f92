#!/bin/sh
# An OpenCL kernel of clang-19 that loads, samples and stores images, with
# descriptors that it makes itself; every value by plain arithmetic.
. tests/tap.sh
run=$T0_BUILD/t0-run
export T0_DEVICE=soft
if ! command -v clang-19 >/dev/null || ! command -v ld.lld-19 >/dev/null; then
	skip_all 'clang-19 and ld.lld-19 are not installed'
fi
cd "$tmp" || exit 2
cat >image.cl <<'C'
typedef float v4f __attribute__((ext_vector_type(4)));
typedef uint v4u __attribute__((ext_vector_type(4)));
typedef uint v8u __attribute__((ext_vector_type(8)));

v4f load_2d(uint, int, int, v8u, uint, uint)
	__asm("llvm.amdgcn.image.load.2d.v4f32.i32");
void store_2d(v4f, uint, int, int, v8u, uint, uint)
	__asm("llvm.amdgcn.image.store.2d.v4f32.i32");
v4f sample_2d(uint, float, float, v8u, v4u, bool, uint, uint)
	__asm("llvm.amdgcn.image.sample.lz.2d.v4f32.f32");

/* 8 by 4 texels of 8_8_8_8_UNORM, rows of 256 bytes. */
static v8u image_of(global void *p)
{
	ulong at = (ulong)p >> 8;
	v8u d = { __builtin_amdgcn_readfirstlane((uint)at),
		  __builtin_amdgcn_readfirstlane((uint)(at >> 32)) | 42u << 20 |
			  3u << 30,
		  1 | 3 << 14, 0x90000fac, 63, 0, 0, 0 };
	return d;
}

kernel void images(global v4f *out, global uint *from, global uint *to)
{
	uint i = __builtin_amdgcn_workitem_id_x(), x = i % 8, y = i / 8;
	v8u a = image_of(from), b = image_of(to);
	/* Bilinear, clamped to the last texel. */
	v4u s = { 2 | 2 << 3 | 2 << 6, 0xfff000, 1 << 20 | 1 << 22, 0 };
	v4f v = load_2d(15, x, y, a, 0, 0);

	store_2d(1.0f - v, 15, 7 - x, y, b, 0, 0);
	out[i] = sample_2d(15, (x + 1) / 8.0f, (y + 0.5f) / 4.0f, a, s, false,
			   0, 0);
}
C
exits 0 'clang-19 compiles it' clang-19 -x cl -cl-std=CL2.0 -O2 -nogpulib \
	-target amdgcn-amd-amdhsa -mcpu=gfx1100 -Xclang \
	-finclude-default-header image.cl -o image.co
exits 0 'it runs, and the checks find nothing' "$run" --check image.co images \
	'out:128:f32>out.bin' 'buf:1024:u8=random(7)>in.bin' \
	'out:1024:u8>to.bin' --grid 32 --block 32
exits 0 'the verifier finds nothing' "$T0_BUILD/t0-isa" verify image.co
od -An -v -tu1 -w1 in.bin >in
od -An -v -tu1 -w1 to.bin >to
od -An -v -tf4 -w4 out.bin >out
is "$(awk 'FILENAME == "in" { t[n++] = $1 }
	FILENAME == "to" { got[m++] = $1 }
	END { for (y = 0; y < 4; y++) for (x = 0; x < 8; x++)
		for (c = 0; c < 4; c++) {
			g = got[y * 256 + (7 - x) * 4 + c]
			w = 255 - t[y * 256 + x * 4 + c]
			if (g != w) print "stored", x, y, c, g, w
		}
	for (i = 32; i < 1024; i++) if (i % 256 >= 32 && got[i])
		print "written beyond a row:", i
	print n, m }' in to)" '1024 1024' 'loads and stores, every texel'
is "$(awk 'FILENAME == "in" { t[n++] = $1 }
	FILENAME == "out" { got[m++] = $1 }
	END { for (y = 0; y < 4; y++) for (x = 0; x < 8; x++)
		for (c = 0; c < 4; c++) {
			right = x < 7 ? x + 1 : 7
			w = t[y * 256 + x * 4 + c] / 510
			w += t[y * 256 + right * 4 + c] / 510
			d = got[(y * 8 + x) * 4 + c] - w
			if (d > 1e-6 || d < -1e-6)
				print "sampled", x, y, c, w + d, w
		}
	print n, m }' in out)" '1024 128' 'samples half way between texels'
plan_done
