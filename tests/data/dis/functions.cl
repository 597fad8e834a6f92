/* Calls of calls, with a stack. */
__attribute__((noinline)) float deep(float x, int n)
{
	volatile float v[9];

	for (int i = 0; i < 9; i++)
		v[i] = x * i;
	return n ? v[n % 9] + 1 : v[0];
}

__attribute__((noinline)) float mid(float x, int n)
{
	return deep(x, n) * deep(x + 1, n - 1);
}

kernel void k(global float *p, int n)
{
	uint i = __builtin_amdgcn_workitem_id_x();

	p[i] = mid(p[i], n);
}
