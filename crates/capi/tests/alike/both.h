/* The same program on Linux's sockets and on farpace's: compiled with -DKERNEL the calls are those of the system, on two network
 * namespaces joined by a cable; without it those of farpace.h, on two hosts in virtual time. What it prints is compared. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIDE_A 0
#define SIDE_B 1

static void must(int ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        exit(1);
    }
}

#ifdef KERNEL

#define fp_socket socket
#define fp_bind bind
#define fp_listen listen
#define fp_accept accept
#define fp_accept4 accept4
#define fp_connect connect
#define fp_read read
#define fp_readv readv
#define fp_recv recv
#define fp_recvfrom recvfrom
#define fp_recvmsg recvmsg
#define fp_recvmmsg(fd, m, n, f, t) recvmmsg(fd, m, n, f, (struct timespec *)(t))
#define fp_write write
#define fp_writev writev
#define fp_send send
#define fp_sendto sendto
#define fp_sendmsg sendmsg
#define fp_sendmmsg sendmmsg
#define fp_shutdown shutdown
#define fp_close close
#define fp_getsockname getsockname
#define fp_getpeername getpeername
#define fp_setsockopt setsockopt
#define fp_getsockopt getsockopt
#define fp_fcntl fcntl
#define fp_ioctl ioctl
#define fp_poll poll

static int spaces[2];

static void run(const char *command) { must(system(command) == 0, command); }

static void begin(void) {
    char text[200];
    for (int i = 0; i < 2; i++) {
        must(unshare(CLONE_NEWNET) == 0, "unshare");
        spaces[i] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        must(spaces[i] >= 0, "namespace");
    }
    must(setns(spaces[0], CLONE_NEWNET) == 0, "setns");
    snprintf(text, sizeof text, "ip link add wire type veth peer name wire netns /proc/%d/fd/%d", getpid(), spaces[1]);
    run(text);
    for (int i = 0; i < 2; i++) {
        must(setns(spaces[i], CLONE_NEWNET) == 0, "setns");
        snprintf(text, sizeof text,
                 "ip link set lo up && ip addr add 10.9.0.%d/24 dev wire && ip addr add fd09::%d/64 dev wire nodad && "
                 "ip link set wire up",
                 i + 1, i + 1);
        run(text);
    }
}
static int side_socket(int side, int domain, int type, int protocol) {
    must(setns(spaces[side], CLONE_NEWNET) == 0, "setns");
    return socket(domain, type, protocol);
}
/* Until everything that was sent has come, and been answered: over such a cable that is nearly at once. */
static void settle(void) { usleep(1500); }
/* Until the descriptor shows what is expected of it. */
static void expect(int fd, short events) {
    struct pollfd one = {.fd = fd, .events = events};
    must(poll(&one, 1, 5000) == 1, "what is expected does not come");
}
static inline void pass(int milliseconds) { usleep((useconds_t)milliseconds * 1000); }

#else

#include <farpace.h>

#define DELAY 1000000ull /* 1 ms one way */

struct packet {
    struct packet *next;
    uint64_t at;
    size_t length;
    unsigned char bytes[2048];
};

static farpace_host *hosts[4]; /* A and B over IPv4, then over IPv6 */
static struct packet *first[4], **last[4] = {&first[0], &first[1], &first[2], &first[3]};
static uint64_t now;

static void collect(void) {
    for (int i = 0; i < 4; i++)
        for (;;) {
            struct packet *p = malloc(sizeof *p);
            must(p != NULL, "memory");
            ssize_t n = farpace_host_output(hosts[i], p->bytes, sizeof p->bytes, now);
            must(n >= 0, "output");
            if (n == 0) {
                free(p);
                break;
            }
            p->next = NULL, p->at = now + DELAY, p->length = (size_t)n;
            *last[i ^ 1] = p, last[i ^ 1] = &p->next;
        }
}
/* To the next thing that happens, not beyond `end`. False: nothing does. */
static int step_until(uint64_t end) {
    collect();
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        uint64_t due = farpace_host_deadline(hosts[i]);
        if (due < next)
            next = due;
        if (first[i] && first[i]->at < next)
            next = first[i]->at;
    }
    if (next > end)
        return 0;
    if (next > now)
        now = next;
    for (int i = 0; i < 4; i++)
        while (first[i] && first[i]->at <= now) {
            struct packet *p = first[i];
            first[i] = p->next;
            if (first[i] == NULL)
                last[i] = &first[i];
            must(farpace_host_input(hosts[i], p->bytes, p->length, now) == 0, "input");
            free(p);
        }
    collect();
    return 1;
}
static int step(void *user, int fd, short events) {
    (void)user, (void)fd, (void)events;
    return !step_until(UINT64_MAX);
}
static void begin(void) {
    const char *addresses[] = {"10.9.0.1", "10.9.0.2", "fd09::1", "fd09::2"};
    for (int i = 0; i < 4; i++) {
        hosts[i] = farpace_host_create(addresses[i], (uint64_t)i + 1, "linux", 1500);
        must(hosts[i] != NULL, "host");
        must(farpace_host_set_wait(hosts[i], step, NULL) == 0, "wait");
    }
}
static int side_socket(int side, int domain, int type, int protocol) {
    return farpace_host_socket(hosts[domain == AF_INET6 ? 2 + side : side], domain, type, protocol);
}
static void pass(int milliseconds) {
    uint64_t end = now + (uint64_t)milliseconds * 1000000;
    while (step_until(end))
        ;
    now = end;
}
static void settle(void) { pass(8); }
static void expect(int fd, short events) { (void)fd, (void)events, settle(); }

#endif

static int domain = AF_INET;

static struct sockaddr_storage name(int side, int port, socklen_t *length) {
    struct sockaddr_storage all;
    memset(&all, 0, sizeof all);
    char text[30];
    if (domain == AF_INET) {
        struct sockaddr_in *in = (void *)&all;
        in->sin_family = AF_INET, in->sin_port = htons((uint16_t)port);
        snprintf(text, sizeof text, "10.9.0.%d", side + 1);
        inet_pton(AF_INET, text, &in->sin_addr);
        *length = sizeof *in;
    } else {
        struct sockaddr_in6 *in = (void *)&all;
        in->sin6_family = AF_INET6, in->sin6_port = htons((uint16_t)port);
        snprintf(text, sizeof text, "fd09::%d", side + 1);
        inet_pton(AF_INET6, text, &in->sin6_addr);
        *length = sizeof *in;
    }
    return all;
}
static int bind_to(int fd, int side, int port) {
    socklen_t length;
    struct sockaddr_storage at = name(side, port, &length);
    return fp_bind(fd, (void *)&at, length);
}
static int connect_to(int fd, int side, int port) {
    socklen_t length;
    struct sockaddr_storage at = name(side, port, &length);
    return fp_connect(fd, (void *)&at, length);
}
static int tcp(int side) {
    int fd = side_socket(side, domain, SOCK_STREAM | SOCK_NONBLOCK, 0);
    must(fd >= 0, "socket");
    return fd;
}
static int listener(int side, int port) {
    int fd = tcp(side), one = 1;
    must(fp_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0, "reuse");
    must(bind_to(fd, side, port) == 0 && fp_listen(fd, 5) == 0, "listen");
    return fd;
}

/* The server's end of a pair that is open, if anything has to be done with it. */
static int peer = -1, server = -1;
#define PORT 7000

/* A connection from A to B; the end of A. */
static int open_pair(void) {
    if (server < 0)
        server = listener(SIDE_B, PORT);
    int fd = tcp(SIDE_A);
    must(connect_to(fd, SIDE_B, PORT) == -1 && errno == EINPROGRESS, "connect");
    expect(fd, POLLOUT);
    expect(server, POLLIN);
    peer = fp_accept4(server, NULL, NULL, SOCK_NONBLOCK);
    must(peer >= 0, "accept");
    return fd;
}
static void reset(int fd) {
    struct linger now_ = {1, 0};
    must(fp_setsockopt(fd, SOL_SOCKET, SO_LINGER, &now_, sizeof now_) == 0, "linger");
    fp_close(fd);
}

static const char *const states[] = {"fresh",   "bound",     "listening", "connecting", "refused", "refused, told",
                                     "open",    "accepted",  "data",      "shut",       "heard",   "heard, data",
                                     "shut, heard", "deaf",  "reset",     "reset, told", "reset, data", "udp",
                                     "udp, bound", "udp, connected", NULL};

/* A socket in a state. What else is open with it is closed by done(). */
static int in_state(const char *state) {
    char byte[100];
    int fd, error;
    socklen_t length = sizeof error;
    peer = -1;
    if (strcmp(state, "fresh") == 0)
        return tcp(SIDE_A);
    if (strncmp(state, "udp", 3) == 0) {
        fd = side_socket(SIDE_A, domain, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        must(fd >= 0, "udp");
        if (strstr(state, "bound"))
            must(bind_to(fd, SIDE_A, 6000) == 0, "bind");
        if (strstr(state, "connected"))
            must(connect_to(fd, SIDE_B, 6001) == 0, "connect");
        return fd;
    }
    if (strcmp(state, "bound") == 0) {
        fd = tcp(SIDE_A);
        must(bind_to(fd, SIDE_A, 6500) == 0, "bind");
        return fd;
    }
    if (strcmp(state, "listening") == 0)
        return listener(SIDE_A, 6600);
    if (strcmp(state, "connecting") == 0) {
        fd = tcp(SIDE_A);
        must(connect_to(fd, 8, PORT) == -1 && errno == EINPROGRESS, "connect to nobody");
        return fd;
    }
    if (strncmp(state, "refused", 7) == 0) {
        fd = tcp(SIDE_A);
        must(connect_to(fd, SIDE_B, 9) == -1 && errno == EINPROGRESS, "connect");
        expect(fd, POLLOUT);
        if (strstr(state, "told"))
            must(fp_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNREFUSED, "error");
        return fd;
    }
    fd = open_pair();
    if (strcmp(state, "accepted") == 0) {
        int client = fd;
        fd = peer, peer = client;
    } else if (strcmp(state, "data") == 0 || strcmp(state, "heard, data") == 0 || strcmp(state, "reset, data") == 0) {
        must(fp_send(peer, "some data", 9, 0) == 9, "send");
        expect(fd, POLLIN);
        if (strcmp(state, "heard, data") == 0)
            must(fp_shutdown(peer, SHUT_WR) == 0, "shutdown"), expect(fd, POLLRDHUP);
        if (strcmp(state, "reset, data") == 0)
            reset(peer), peer = -1, expect(fd, POLLERR);
    } else if (strcmp(state, "shut") == 0) {
        must(fp_shutdown(fd, SHUT_WR) == 0, "shutdown");
    } else if (strcmp(state, "heard") == 0) {
        must(fp_shutdown(peer, SHUT_WR) == 0, "shutdown"), expect(fd, POLLRDHUP);
    } else if (strcmp(state, "shut, heard") == 0) {
        must(fp_shutdown(fd, SHUT_WR) == 0 && fp_shutdown(peer, SHUT_WR) == 0, "shutdown");
        expect(fd, POLLRDHUP);
    } else if (strcmp(state, "deaf") == 0) {
        must(fp_shutdown(fd, SHUT_RD) == 0, "shutdown");
    } else if (strncmp(state, "reset", 5) == 0) {
        reset(peer), peer = -1;
        expect(fd, POLLERR);
        if (strstr(state, "told"))
            must(fp_recv(fd, byte, 1, 0) == -1 && errno == ECONNRESET, "reset");
    }
    settle();
    return fd;
}
static void done(int fd) {
    /* By resets: nothing is to be left in TIME-WAIT. */
    if (peer >= 0)
        reset(peer), peer = -1;
    reset(fd);
    settle();
    /* What a call of the test has connected, and nobody has accepted. */
    for (int left; server >= 0 && (left = fp_accept4(server, NULL, NULL, SOCK_NONBLOCK)) >= 0;)
        reset(left);
}
/* The server that connections need: not to be looked for by the first of them alone. */
static void begin_in(int family) {
    begin();
    domain = family;
    done(open_pair());
}

/* What a call returned, with the name of its error. */
static inline const char *result(long value) {
    static char text[4][60];
    static int turn;
    char *into = text[turn++ % 4];
    if (value == -1)
        snprintf(into, 60, "-1 %s", strerrorname_np(errno));
    else
        snprintf(into, 60, "%ld", value);
    return into;
}
static inline const char *mask(int fd) {
    static char text[100];
    struct pollfd one = {.fd = fd, .events = POLLIN | POLLPRI | POLLOUT | POLLRDHUP};
    must(poll(&one, 1, 0) >= 0, "poll");
    snprintf(text, sizeof text, "%s%s%s%s%s%s", one.revents & POLLIN ? " IN" : "", one.revents & POLLPRI ? " PRI" : "",
             one.revents & POLLOUT ? " OUT" : "", one.revents & POLLRDHUP ? " RDHUP" : "",
             one.revents & POLLERR ? " ERR" : "", one.revents & POLLHUP ? " HUP" : "");
    return text;
}
