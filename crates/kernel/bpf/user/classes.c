/* Drives the arithmetic of classes in user space, for tests/differential: lines in on standard input, one line out for each.
 *
 *   D now rate bytes limit horizon    the next frame of the class: its verdict, and when it leaves
 *   R                                 the class begins anew
 *   L len whole segments size         bytes of layer 2
 *   K hexadecimal bytes               the key of a frame: five numbers
 */
#include "types.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
	u8 bytes[1 << 16];
	u32 len;
} frame;

static int load(const frame *f, u32 at, void *to, u32 len)
{
	if (at > f->len || len > f->len - at)
		return -1;
	memcpy(to, f->bytes + at, len);
	return 0;
}

#include "../classes/departure.h"
#include "../classes/key.h"

static char line[1 << 18];
static frame bytes;

static void key_of_line(void)
{
	struct filter_key key = { 0 };
	unsigned int byte;

	bytes.len = 0;
	for (char *at = line + 2; sscanf(at, "%2x", &byte) == 1; at += 2)
		bytes.bytes[bytes.len++] = byte;
	key_of(&bytes, &key);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", key.dst[0], key.dst[1], key.src[0],
	       key.src[1], key.rest);
}

int main(void)
{
	struct departures class = { 0 };
	u64 now, rate, frame_bytes, limit, horizon, at = 0;
	u32 len, whole, segments, size;

	while (fgets(line, sizeof(line), stdin)) {
		switch (line[0]) {
		case 'D':
			if (sscanf(line + 1, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &now, &rate,
				   &frame_bytes, &limit, &horizon) != 5)
				return 2;
			at = 0;
			printf("%d ", depart(&class, rate, now, frame_bytes, limit, horizon, &at));
			printf("%" PRIu64 "\n", at);
			break;
		case 'R':
			class = (struct departures){ 0 };
			printf("\n");
			break;
		case 'L':
			if (sscanf(line + 1, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &len, &whole, &segments,
				   &size) != 4)
				return 2;
			printf("%" PRIu64 "\n", layer_2_of(len, whole, segments, size));
			break;
		case 'K':
			key_of_line();
			break;
		default:
			return 2;
		}
		fflush(stdout);
	}
	return 0;
}
