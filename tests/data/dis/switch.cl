kernel void k(global int *p, int n)
{
	uint i = __builtin_amdgcn_workitem_id_x();

	switch (p[i]) {
	case 0:
		p[i] = n;
		break;
	case 1:
		p[i] = n * 3;
		break;
	case 2:
		p[i] ^= 5;
		break;
	case 3:
		p[i] = p[i + 1];
		break;
	case 4:
		p[n] = 8;
		break;
	default:
		p[i] = 99;
	}
}
