int printf(constant const char *format, ...);

kernel void k(global int *p)
{
	printf("hello %d %s\n", p[0], "x");
	p[1] = 2;
}
