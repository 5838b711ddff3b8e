/* Drives the congestion controls in user space, for tests/differential.rs: events in on standard input, windows and
 * pacing rates out on standard output, one line for each.
 *
 *   drive farpace|star CWND MSS DELIVERED
 *
 *   A now rate acked delivered lost in_flight rtt rate_rtt min_rtt srtt prior total mss max_window has_rate limited ece may_raise
 *   E rtt         the handshake took rtt microseconds
 *   C             the window is reduced after a loss; M: after a mark
 *   L             a retransmission timeout
 *   U             the last reduction is undone
 *
 * `may_raise`: recovery lets this ACK raise the window; star alone asks for that.
 * Out: cwnd, ssthresh, pacing rate in bytes a second (0: none).
 */
#include "types.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../farpace/control.h"
#include "../star/control.h"

static struct farpace farpace;
static struct star star;
static bool is_star;
static u32 cwnd, ssthresh = UINT32_MAX, mss;

static void on_ack(const struct fp_ack *ack, bool may_raise)
{
	if (is_star) {
		abe_on_acked(&star.abe, ack);
		if (may_raise)
			cwnd = star_on_ack(&star, ack, cwnd, ssthresh);
	} else {
		farpace_begin(&farpace, cwnd, ack->mss);
		farpace_on_ack(&farpace, ack);
		cwnd = farpace_window(&farpace);
	}
}

static void on_cut(bool marked)
{
	if (is_star) {
		ssthresh = star_ssthresh(&star, cwnd, mss, marked);
		cwnd = ssthresh;
	} else {
		farpace_on_cut(&farpace);
	}
}

static void on_timeout(void)
{
	if (is_star) {
		cwnd = star_on_timeout(&star);
	} else {
		farpace_on_timeout(&farpace);
		cwnd = farpace_window(&farpace);
	}
}

static void on_undo(void)
{
	if (is_star) {
		cwnd = star_on_undo(&star, cwnd);
	} else {
		farpace_on_undo(&farpace);
		cwnd = farpace_window(&farpace);
	}
}

int main(int count, char **words)
{
	char line[512];

	if (count != 5)
		return 2;
	is_star = !strcmp(words[1], "star");
	cwnd = strtoul(words[2], NULL, 10);
	mss = strtoul(words[3], NULL, 10);
	/* Segments delivered before it began: the counter wraps. */
	farpace.next_delivered = farpace.train.from = strtoul(words[4], NULL, 10);
	if (is_star)
		star_begin(&star, cwnd);
	else
		farpace_begin(&farpace, cwnd, mss);
	while (fgets(line, sizeof(line), stdin)) {
		struct fp_ack a = { 0 };
		u32 has_rate, limited, ece, may_raise, has_peer_clock, app_limited, rtt;

		switch (line[0]) {
		case 'A':
			if (sscanf(line + 1,
				   "%" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32
				   " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32
				   " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32
				   " %" SCNu32 " %" SCNu32 " %" SCNu32,
				   &a.now, &a.rate, &a.acked, &a.delivered, &a.lost, &a.in_flight, &a.rtt,
				   &a.rate_rtt, &a.min_rtt, &a.srtt, &a.prior_delivered, &a.total_delivered, &a.mss,
				   &a.max_window, &has_rate, &limited, &ece, &may_raise, &has_peer_clock,
				   &a.peer_clock, &app_limited) != 21)
				return 2;
			a.has_rate = has_rate;
			a.cwnd_limited = limited;
			a.ece = ece;
			a.has_peer_clock = has_peer_clock;
			a.app_limited = app_limited;
			on_ack(&a, may_raise);
			break;
		case 'E':
			rtt = strtoul(line + 1, NULL, 10);
			farpace.srtt = rtt;
			abe_on_established(&star.abe, rtt);
			break;
		case 'C':
		case 'M':
			on_cut(line[0] == 'M');
			break;
		case 'L':
			on_timeout();
			break;
		case 'U':
			on_undo();
			break;
		default:
			return 2;
		}
		printf("%" PRIu32 " %" PRIu32 " %" PRIu64 "\n", cwnd, ssthresh,
		       is_star ? 0 : farpace_pacing(&farpace));
		fflush(stdout);
	}
	return 0;
}
