/*
 * ref-state - the registers of a wave, as references of instructions see them.
 *
 * Who includes it may say first how many VGPRs there are: #define REF_VGPRS.
 */
#ifndef T0_TESTS_REF_STATE_H
#define T0_TESTS_REF_STATE_H

#include <stdint.h>

#ifndef REF_VGPRS
#define REF_VGPRS 64
#endif

struct state {
	uint32_t v[2][REF_VGPRS][32]; /* [half][register][lane] */
	uint32_t s[128];
	uint32_t scc;
};

#endif
