/* Hosts in the program's own time: what farpace_host_create() takes and refuses, when packets left, and that the deadline is that
 * of something that happens. */
#include "check.h"

#define REFUSED(call, error) CHECK((errno = 0, (call) == NULL && errno == (error)))

static uint64_t now;

static farpace_host *host(const char *address, const char *words) {
    farpace_host *made = farpace_host_create(address, 7, words, 0);
    CHECK(made != NULL);
    return made;
}

static void what_is_refused(void) {
    char why[200];
    const char *addresses[] = {"0.0.0.0", "224.0.0.1", "255.255.255.255", "127.0.0.1", "::", "ff02::1", "::1", "ten", "", NULL};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        REFUSED(farpace_host_create(addresses[i], 1, NULL, 0), EINVAL);
    CHECK(fp_stack_reason(why, sizeof why) > 0);
    REFUSED(farpace_host_create("10.0.0.1", 1, NULL, 1), EINVAL);
    REFUSED(farpace_host_create("10.0.0.1", 1, NULL, 67), EINVAL);
    REFUSED(farpace_host_create("fd00::1", 1, NULL, 1279), EINVAL);
    REFUSED(farpace_host_create("10.0.0.1", 1, "nonesuch", 0), ENOENT);
    REFUSED(farpace_host_create("10.0.0.1", 1, "sack=perhaps", 0), EINVAL);
    CHECK(fp_stack_reason(why, sizeof why) > 0 && strstr(why, "sack=perhaps"));
    uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, group[6] = {1, 0, 0, 0, 0, 1};
    REFUSED(farpace_host_create_ethernet("10.0.0.1", 1, NULL, 0, group, 24, NULL), EINVAL);
    REFUSED(farpace_host_create_ethernet("10.0.0.1", 1, NULL, 0, NULL, 24, NULL), EFAULT);
    REFUSED(farpace_host_create_ethernet("10.0.0.1", 1, NULL, 0, mac, 33, NULL), EINVAL);
    REFUSED(farpace_host_create_ethernet("10.0.0.1", 1, NULL, 0, mac, 24, "0.0.0.0"), EINVAL);
    REFUSED(farpace_host_create_ethernet("10.0.0.1", 1, NULL, 0, mac, 24, "fd00::1"), EINVAL);
    farpace_host *good = farpace_host_create_ethernet("10.0.0.1", 1, NULL, 68, mac, 24, "10.0.0.254");
    CHECK(good != NULL);
    farpace_host_destroy(good);
}

/* The TCP header of the packet that goes out; none if there is none. */
static unsigned char packet[2048];
static ssize_t length;
static uint64_t sent;

static int next(farpace_host *from) {
    length = farpace_host_output_at(from, packet, sizeof packet, now, &sent);
    CHECK(length >= 0);
    return length > 0;
}

static int begins(farpace_host *from) {
    int fd = farpace_host_socket(from, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = address("10.0.0.2", 80);
    FAILS(fp_connect(fd, &at, sizeof at), EINPROGRESS);
    return fd;
}

/* The kinds of options of a SYN, as a set. */
static unsigned kinds(void) {
    unsigned seen = 0;
    for (unsigned at = 40, end = 20 + (packet[32] >> 4) * 4u; at < end && packet[at] != 0;) {
        seen |= 1u << packet[at];
        at += packet[at] == 1 ? 1 : packet[at + 1];
    }
    return seen;
}

static void switches(void) {
    enum { SCALE = 1 << 3, SACK = 1 << 4, STAMPS = 1 << 8 };
    farpace_host *plain = host("10.0.0.1", "linux ecn=on");
    int fd = begins(plain);
    CHECK(next(plain) && (packet[33] & 0xc2) == 0xc2 && (kinds() & (SCALE | SACK | STAMPS)) == (SCALE | SACK | STAMPS));
    close(fd);
    /* One socket otherwise than the rest. */
    fd = farpace_host_socket(plain, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const char *words = "sack=off timestamps=off window_scale=off ecn=off";
    char said[200];
    socklen_t len = sizeof said;
    CHECK(fp_setsockopt(fd, SOL_FARPACE, FP_SETTINGS, words, (socklen_t)strlen(words)) == 0);
    FAILS(fp_setsockopt(fd, SOL_FARPACE, FP_SETTINGS, "sack=x", 6), EINVAL);
    CHECK(fp_getsockopt(fd, SOL_FARPACE, FP_SETTINGS, said, &len) == 0 && len == strlen(said) + 1);
    CHECK(strstr(said, "profile=linux") && strstr(said, "sack=false") && strstr(said, "ecn=off"));
    struct sockaddr_in at = address("10.0.0.2", 80);
    FAILS(fp_connect(fd, &at, sizeof at), EINPROGRESS);
    while (next(plain) && !(packet[33] & 2))
        ;
    CHECK((packet[33] & 0xc2) == 2 && (kinds() & (SCALE | SACK | STAMPS)) == 0);
    close(fd);
    farpace_host_destroy(plain);
}

/* A SYN that nobody answers, and what is sent when time passes in one step: each packet says when it left. */
static void times(void) {
    now = 5000000000ull;
    farpace_host *alone = host("10.0.0.1", "modern");
    CHECK(farpace_host_deadline(alone) == UINT64_MAX);
    CHECK(!next(alone));
    int fd = begins(alone);
    CHECK(farpace_host_deadline(alone) <= now);
    CHECK(next(alone) && sent == now && !next(alone));
    uint64_t due = farpace_host_deadline(alone);
    CHECK(due > now && due < now + 4000000000ull);
    /* A buffer that is too small loses nothing. */
    now = due + 123456789;
    FAILS(farpace_host_output_at(alone, packet, 5, now, &sent), EMSGSIZE);
    CHECK(next(alone) && sent == due && !next(alone));
    /* At each deadline something is sent, until the connection is given up; then there is none. */
    int sends = 0;
    for (uint64_t was = due; (due = farpace_host_deadline(alone)) != UINT64_MAX; was = due) {
        CHECK(due > was);
        now = due;
        if (next(alone))
            sends++;
    }
    CHECK(sends >= 5);
    int error = 0;
    socklen_t len = sizeof error;
    CHECK(fp_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == ETIMEDOUT);
    close(fd);
    /* The deadline of a connection that is gone is none. */
    fd = begins(alone);
    CHECK(next(alone) && farpace_host_deadline(alone) != UINT64_MAX);
    CHECK(fp_close(fd) == 0);
    while (next(alone))
        ;
    CHECK(farpace_host_deadline(alone) == UINT64_MAX);
    farpace_host_destroy(alone);
}

/* A host without memory takes no connection, and one with some counts them. */
static void memory(void) {
    farpace_host *h = host("10.0.0.1", NULL);
    CHECK(farpace_host_memory(h) == 0 && farpace_host_set_memory(h, 64 << 10) == 0);
    struct sockaddr_in at = address("10.0.0.2", 80);
    for (int n = 0; n < 14; n++)
        CHECK(begins(h) >= 0);
    CHECK(farpace_host_memory(h) == 14 * 4096);
    int fd = farpace_host_socket(h, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    FAILS(fp_connect(fd, &at, sizeof at), ENOBUFS);
    CHECK(farpace_host_set_memory(h, 1 << 20) == 0);
    FAILS(fp_connect(fd, &at, sizeof at), EINPROGRESS);
    farpace_host_destroy(h);
}

int main(void) {
    alarm(60);
    what_is_refused(), switches(), times(), memory();
    puts("well");
    return 0;
}
