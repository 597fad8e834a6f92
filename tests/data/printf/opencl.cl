#include "print.h"

/* A line of every lane. */
kernel void lanes(int n)
{
	const int i = gid();

	if (i < n)
		printf("lane %d: %u %.3f\n", i, (uint)i * 2654435761u,
		       0.5f * i);
}

/* One of each conversion; the test prints the same with libc. */
kernel void all(int i, uint u, long l, ulong ul, double d, float f, half h,
		global void *p)
{
	const float4 v = (float4)(f, -f, 2 * f, 0);
	const int3 w = (int3)(i, -i, 7);
	const char4 c = (char4)(1, -1, 127, -128);

	if (lid())
		return;
	printf("%d|%i|%5d|%-5d|%05d|%+d|% d|%.3d\n", i, i, i, i, i, i, i, i);
	printf("%u|%o|%#o|%x|%X|%#x|%08x\n", u, u, u, u, u, u, u);
	printf("%ld|%lu|%lx|%20ld|%-20ld|\n", l, ul, ul, l, l);
	printf("%hd|%hu|%hhd|%hhu|%hhx\n", (short)i, (ushort)u, (char)i,
	       (uchar)u, (uchar)u);
	printf("%f|%e|%g|%a|%E|%G\n", d, d, d, d, d, d);
	printf("%.0f|%10.3f|%-10.3f|%+.2e|%#g|%012.4f\n", f, f, f, f, f, f);
	printf("%c%c%c|%5c|%-5c|\n", 'a' + i % 26, 'b', '%', 'x', 'y');
	printf("%s|%10s|%-10s|%.2s|%s|%s|\n", "abcde", "right", "left",
	       "cut", "", "ab");
	printf("text %s of 4 %d and %s of 8: %d\n", "four", i, "eight888", i);
	printf("%p|%%|100%%\n", p);
	printf("%v4hlf|%v4hle|%v3hld|%v4hhd|%v2hlx\n", v, v, w, c, w.xy);
	printf("%f colon : tab \t quote \" backslash \\ bell \a end\n",
	       (float)h);
	printf("plain\n");
}

/* The hidden arguments as they came. */
kernel void hidden(global uint *out)
{
	constant uint *in = (constant uint *)__builtin_amdgcn_implicitarg_ptr();

	if (lid() || group())
		return;
	for (int i = 0; i < 64; i++)
		out[i] = in[i];
}
