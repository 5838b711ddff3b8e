/* Two hosts in virtual time: a request, an answer, and 10 ms of way between them.
 *
 *   cc -I include examples/pair.c -o pair -L target/release -lfarpace */
#include <arpa/inet.h>
#include <errno.h>
#include <farpace.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DELAY 10000000ull /* 10 ms one way */
#define BYTES 300000

struct packet {
    struct packet *next;
    uint64_t at;
    size_t length;
    unsigned char bytes[2048];
};

static farpace_host *hosts[2];
static struct packet *first[2], **last[2] = {&first[0], &first[1]};
static uint64_t now, sum = 14695981039346656037ull;
static unsigned packets;

static void check(int ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        exit(1);
    }
}

/* Whatever the hosts want to send goes on its way. */
static void collect(void) {
    for (int i = 0; i < 2; i++)
        for (;;) {
            struct packet *p = malloc(sizeof *p);
            check(p != NULL, "memory");
            ssize_t n = farpace_host_output(hosts[i], p->bytes, sizeof p->bytes, now);
            check(n >= 0, "output");
            if (n == 0) {
                free(p);
                break;
            }
            for (ssize_t k = 0; k < n; k++)
                sum = (sum ^ p->bytes[k]) * 1099511628211ull;
            packets++;
            p->next = NULL, p->at = now + DELAY, p->length = (size_t)n;
            *last[!i] = p, last[!i] = &p->next;
        }
}

/* To the next thing that happens. */
static int step(void *user, int fd, short events) {
    (void)user, (void)fd, (void)events;
    collect();
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        uint64_t due = farpace_host_deadline(hosts[i]);
        if (due < next)
            next = due;
        if (first[i] && first[i]->at < next)
            next = first[i]->at;
    }
    if (next == UINT64_MAX)
        return 1; /* nothing will ever happen */
    if (next > now)
        now = next;
    for (int i = 0; i < 2; i++)
        while (first[i] && first[i]->at <= now) {
            struct packet *p = first[i];
            first[i] = p->next;
            if (first[i] == NULL)
                last[i] = &first[i];
            check(farpace_host_input(hosts[i], p->bytes, p->length, now) == 0, "input");
            free(p);
        }
    collect();
    return 0;
}

int main(int count, char **words) {
    uint64_t seed = count > 1 ? strtoull(words[1], NULL, 10) : 1;
    hosts[0] = farpace_host_create("10.0.0.1", seed, "modern", 1500);
    hosts[1] = farpace_host_create("10.0.0.2", seed + 1, "modern", 1500);
    check(hosts[0] && hosts[1], "hosts");
    check(farpace_host_set_wait(hosts[0], step, NULL) == 0, "wait");
    check(farpace_host_set_wait(hosts[1], step, NULL) == 0, "wait");

    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(80)};
    inet_pton(AF_INET, "10.0.0.2", &at.sin_addr);
    int listener = farpace_host_socket(hosts[1], AF_INET, SOCK_STREAM, 0);
    check(listener >= 0 && fp_bind(listener, &at, sizeof at) == 0 && fp_listen(listener, 5) == 0, "listen");
    int client = farpace_host_socket(hosts[0], AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    check(fp_connect(client, &at, sizeof at) == -1 && errno == EINPROGRESS, "connect begins");
    int server = fp_accept(listener, NULL, NULL);
    check(server >= 0, "accept");

    static unsigned char out[BYTES], in[BYTES];
    for (int i = 0; i < BYTES; i++)
        out[i] = (unsigned char)(i * 7 + i / 251);
    size_t sent = 0, got = 0;
    while (got < BYTES) {
        if (sent < BYTES) {
            ssize_t n = fp_write(client, out + sent, BYTES - sent);
            check(n > 0 || errno == EAGAIN, "write");
            sent += n > 0 ? (size_t)n : 0;
            if (sent == BYTES)
                check(fp_shutdown(client, SHUT_WR) == 0, "shutdown");
        }
        ssize_t n = fp_read(server, in + got, BYTES - got);
        check(n > 0, "read");
        got += (size_t)n;
    }
    check(memcmp(in, out, BYTES) == 0, "the bytes are others");
    check(fp_read(server, in, 1) == 0, "the end");
    check(close(client) == 0 && fp_close(server) == 0 && close(listener) == 0, "close");
    for (int i = 0; i < 20; i++)
        step(NULL, 0, 0);
    printf("%u packets in %.3f s, sum %016llx\n", packets, (double)now * 1e-9, (unsigned long long)sum);
    farpace_host_destroy(hosts[0]);
    farpace_host_destroy(hosts[1]);
    return 0;
}
