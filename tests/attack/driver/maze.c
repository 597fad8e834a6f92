/*
 * A target with a defect that no chance finds: a text and a number must be
 * right first.  Tests of the driver want it found.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/attack/driver/driver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t number;

	if (size < 12 || data[0] != 'm' || data[1] != 'a' || data[2] != 'z')
		return 0;
	memcpy(&number, data + 4, sizeof(number));
	if (number != 0x12345678 || memcmp(data + 8, "door", 4))
		return 0;
	char *room = malloc(size);
	memcpy(room, data, size);
	/* The address sanitizer's to see. */
	((volatile char *)room)[size] = 0;
	free(room);
	return 0;
}
