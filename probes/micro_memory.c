#include "probes/micro_gpu.h"
int micro_memory(const struct probe_opts *o, struct err *e){(void)o;(void)e;return 2;}
int micro_lds(const struct probe_opts *o, struct err *e){(void)o;(void)e;return 2;}
int micro_overlap(const struct probe_opts *o, struct err *e){(void)o;(void)e;return 2;}
int micro_branch(const struct probe_opts *o, struct err *e){(void)o;(void)e;return 2;}
int micro_fetch(const struct probe_opts *o, struct err *e){(void)o;(void)e;return 2;}
int micro_waves(const struct probe_opts *o, struct err *e){(void)o;(void)e;return 2;}
