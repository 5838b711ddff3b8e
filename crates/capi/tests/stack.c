/* A stack on a TUN device and the kernel's sockets. Run in a network namespace of its own. */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define KERNEL "10.77.0.1"
#define OURS "10.77.0.2"

static void *close_later(void *fd) {
    usleep(50000);
    fp_close(*(int *)fd);
    return NULL;
}

static void *interrupt_later(void *stack) {
    usleep(50000);
    fp_stack_interrupt(stack);
    return NULL;
}

static void on_alarm(int signal) { (void)signal; }

static uint64_t at_64(const unsigned char *from, size_t at) {
    uint64_t value;
    memcpy(&value, from + at, sizeof value);
    return value;
}

static uint32_t at_32(const unsigned char *from, size_t at) {
    uint32_t value;
    memcpy(&value, from + at, sizeof value);
    return value;
}

/* The descriptor shows these events and no others. POLLIN may come a moment before the rest (src/descriptor.rs). */
static int shows(int fd, int events) {
    int seen = 0;
    for (int left = 200; left > 0 && seen != events; left--) {
        seen = polled(fd, POLLIN | POLLRDHUP, 2000);
        if (seen == POLLIN)
            usleep(10000);
    }
    return seen == events;
}

static void nobody_is_there(void) {
    int fd = fp_socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = address(KERNEL, 9);
    FAILS(fp_connect(fd, &at, sizeof at), ECONNREFUSED);
    CHECK(fp_close(fd) == 0);
    FAILS(fp_close(fd), EBADF);
    /* The same without waiting, as event loops do it. */
    fd = fp_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    FAILS(fp_connect(fd, &at, sizeof at), EINPROGRESS);
    int seen = polled(fd, POLLOUT, 2000);
    /* A poll in the very moment of the refusal sees it hang up, and the next one all of it. */
    if (seen & POLLHUP)
        seen = polled(fd, POLLOUT, 2000);
    CHECK((seen & (POLLOUT | POLLERR | POLLHUP)) == (POLLOUT | POLLERR | POLLHUP));
    int error = 0;
    socklen_t len = sizeof error;
    CHECK(fp_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == ECONNREFUSED);
    CHECK(fp_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0);
    CHECK((polled(fd, POLLOUT, 0) & POLLERR) == 0);
    close(fd);
}

static void what_is_wrong(void) {
    char byte = 0;
    struct sockaddr_in at = address(OURS, 7), other = address(KERNEL, 7);
    FAILS(fp_socket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
    FAILS(fp_socket(AF_INET, SOCK_RAW, 0), EPROTONOSUPPORT);
    FAILS(fp_read(12345, &byte, 1), EBADF);
    FAILS(fp_read(0, &byte, 1), EBADF);
    int fd = fp_socket(AF_INET, SOCK_STREAM, IPPROTO_TCP), twin = fp_socket(AF_INET, SOCK_STREAM, 0);
    FAILS(fp_read(fd, &byte, 1), ENOTCONN);
    FAILS(fp_write(fd, &byte, 1), EPIPE);
    FAILS(fp_shutdown(fd, SHUT_WR), ENOTCONN);
    FAILS(fp_accept(fd, NULL, NULL), EINVAL);
    FAILS(fp_bind(fd, &other, sizeof other), EADDRNOTAVAIL);
    FAILS(fp_bind(fd, NULL, sizeof at), EFAULT);
    FAILS(fp_bind(fd, &at, 3), EINVAL);
    CHECK(fp_bind(fd, &at, sizeof at) == 0);
    FAILS(fp_bind(fd, &at, sizeof at), EINVAL);
    CHECK(fp_listen(fd, 3) == 0);
    FAILS(fp_bind(twin, &at, sizeof at), EADDRINUSE);
    FAILS(fp_connect(fd, &other, sizeof other), EISCONN);
    FAILS(fp_getpeername(fd, &other, &(socklen_t){sizeof other}), ENOTCONN);
    FAILS(fp_setsockopt(fd, SOL_SOCKET, 9999, &fd, sizeof fd), ENOPROTOOPT);
    FAILS(fp_setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &fd, 1), EINVAL);
    FAILS(fp_setsockopt(twin, IPPROTO_TCP, TCP_CONGESTION, "nonesuch", 8), ENOENT);
    CHECK(fp_fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    FAILS(fp_accept(fd, NULL, NULL), EAGAIN);
    CHECK(polled(fd, POLLIN | POLLOUT, 0) == 0);
    int accepting = 0;
    CHECK(fp_getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &(socklen_t){4}) == 0 && accepting == 1);
    close(fd), close(twin);
}

static void options(void) {
    int fd = fp_socket(AF_INET, SOCK_STREAM, 0), one = 1, value = 0;
    socklen_t len = sizeof value;
    int names[][2] = {{SOL_SOCKET, SO_REUSEADDR}, {SOL_SOCKET, SO_KEEPALIVE}, {IPPROTO_TCP, TCP_NODELAY}};
    for (int i = 0; i < 3; i++) {
        CHECK(fp_setsockopt(fd, names[i][0], names[i][1], &one, sizeof one) == 0);
        CHECK(fp_getsockopt(fd, names[i][0], names[i][1], &value, &len) == 0 && value == 1 && len == 4);
    }
    int seconds = 33;
    CHECK(fp_setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, 4) == 0);
    CHECK(fp_getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &len) == 0 && value == 33);
    CHECK(fp_getsockopt(fd, IPPROTO_TCP, TCP_LINGER2, &value, &len) == 0 && value == 60);
    CHECK(fp_setsockopt(fd, IPPROTO_TCP, TCP_LINGER2, &seconds, 4) == 0);
    CHECK(fp_getsockopt(fd, IPPROTO_TCP, TCP_LINGER2, &value, &len) == 0 && value == 33);
    int bytes = 100000; /* as in Linux, twice as much is there */
    CHECK(fp_setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, 4) == 0);
    CHECK(fp_getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &len) == 0 && value == 200000);
    char name[16];
    len = sizeof name;
    CHECK(fp_setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) == 0);
    CHECK(fp_getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 && strcmp(name, "reno") == 0);
    /* By the name with which it can be set again. */
    CHECK(fp_setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "star-robust", 11) == 0);
    CHECK(fp_getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 && strcmp(name, "star-robust") == 0);
    struct linger linger = {1, 5}, got;
    len = sizeof got;
    CHECK(fp_setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    CHECK(fp_getsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &len) == 0 && got.l_onoff && got.l_linger == 5);
    close(fd);
}

/* An echo between a client of ours and a server of the kernel's, with epoll, edge-triggered. */
static void echo(void) {
    struct sockaddr_in at = address(KERNEL, 7);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listener >= 0 && bind(listener, (void *)&at, sizeof at) == 0 && listen(listener, 5) == 0);
    int fd = fp_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), small = 50000;
    CHECK(fp_setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    FAILS(fp_connect(fd, &at, sizeof at), EINPROGRESS);
    int peer = accept(listener, NULL, NULL);
    CHECK(peer >= 0 && polled(fd, POLLOUT, 2000) == POLLOUT);
    /* As in Linux: it is told once. */
    CHECK(fp_connect(fd, &at, sizeof at) == 0);
    FAILS(fp_connect(fd, &at, sizeof at), EISCONN);

    enum { SIZE = 3000000 };
    unsigned char *out = malloc(SIZE), *in = malloc(SIZE), *middle = malloc(65536);
    for (int i = 0; i < SIZE; i++)
        out[i] = (unsigned char)(i * 31 + i / 997);
    int epoll = epoll_create1(0);
    struct epoll_event watch = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd}, event;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &watch) == 0);
    fcntl(peer, F_SETFL, O_NONBLOCK);
    size_t sent = 0, got = 0, held = 0, at_middle = 0;
    int full = 0;
    while (got < SIZE) {
        if (epoll_wait(epoll, &event, 1, 1) == 1) {
            if (event.events & EPOLLOUT)
                while (sent < SIZE) {
                    ssize_t n = fp_write(fd, out + sent, SIZE - sent);
                    if (n < 0) {
                        CHECK(errno == EAGAIN);
                        full++;
                        break;
                    }
                    sent += (size_t)n;
                }
            if (event.events & EPOLLIN)
                for (;;) {
                    ssize_t n = fp_read(fd, in + got, SIZE - got);
                    if (n <= 0) {
                        CHECK(got == SIZE || errno == EAGAIN);
                        break;
                    }
                    got += (size_t)n;
                }
        }
        if (held == at_middle) {
            ssize_t n = read(peer, middle, 65536);
            held = n > 0 ? (size_t)n : 0, at_middle = 0;
        }
        if (held > at_middle) {
            ssize_t n = write(peer, middle + at_middle, held - at_middle);
            at_middle += n > 0 ? (size_t)n : 0;
        }
    }
    CHECK(memcmp(in, out, SIZE) == 0);
    CHECK(full > 0);
    CHECK(polled(fd, POLLIN | POLLOUT, 0) == POLLOUT);

    struct tcp_info info;
    socklen_t len = sizeof info;
    memset(&info, 0xff, sizeof info);
    CHECK(fp_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && len >= 104);
    CHECK(info.tcpi_state == TCP_ESTABLISHED && info.tcpi_snd_mss == 1448 && info.tcpi_pmtu == 1500);
    CHECK(info.tcpi_rtt > 0 && info.tcpi_rtt < 1000000 && info.tcpi_rto >= 200000);
    CHECK(info.tcpi_snd_cwnd > 1 && (info.tcpi_options & 7) == 7);
    CHECK(info.tcpi_snd_wscale > 0 && info.tcpi_rcv_wscale > 0 && info.tcpi_advmss == 1448);
    CHECK(info.tcpi_rttvar > 0 && info.tcpi_rttvar < 1000000 && info.tcpi_rcv_ssthresh > 100000);
    CHECK(info.tcpi_last_data_sent < 10000 && info.tcpi_last_data_recv < 10000 && info.tcpi_last_ack_recv < 10000);
    CHECK(info.tcpi_lost == 0 && info.tcpi_retransmits == 0 && info.tcpi_probes == 0);
    /* What the C library's structure is too old for, by its place in linux/tcp.h. */
    unsigned char more[256];
    len = sizeof more;
    CHECK(fp_getsockopt(fd, IPPROTO_TCP, TCP_INFO, more, &len) == 0 && len == 256);
    CHECK(at_64(more, 128) == SIZE && at_64(more, 200) >= SIZE && at_32(more, 152) > 1000 && at_32(more, 156) > 1000);
    CHECK(at_32(more, 148) > 0 && at_32(more, 148) <= info.tcpi_rtt);
    /* The window of the kernel, which grows as it sees fit. */
    CHECK(at_32(more, 228) > 10000);

    CHECK(write(peer, "hello", 5) == 5);
    CHECK(polled(fd, POLLIN, 2000) == POLLIN);
    int there = 0;
    while (there < 5)
        CHECK(fp_ioctl(fd, FIONREAD, &there) == 0);
    char word[9];
    CHECK(fp_recv(fd, word, 9, MSG_PEEK) == 5);
    struct iovec parts[2] = {{word, 2}, {word + 2, 7}};
    CHECK(fp_readv(fd, parts, 2) == 5 && memcmp(word, "hello", 5) == 0);
    CHECK(polled(fd, POLLIN, 0) == 0);
    FAILS(fp_read(fd, word, 9), EAGAIN);
    shutdown(peer, SHUT_WR);
    CHECK(shows(fd, POLLIN | POLLRDHUP));
    CHECK(fp_read(fd, word, 9) == 0 && fp_write(fd, "x", 1) == 1);
    CHECK(polled(peer, POLLIN, 2000) && read(peer, word, 1) == 1);
    CHECK(fp_shutdown(fd, SHUT_WR) == 0);
    FAILS(fp_write(fd, "x", 1), EPIPE);
    CHECK(polled(fd, POLLIN, 2000) & POLLHUP);
    CHECK(polled(peer, POLLIN, 2000) && read(peer, word, 1) == 0);
    CHECK(fp_close(fd) == 0 && close(peer) == 0 && close(listener) == 0 && close(epoll) == 0);
    free(in), free(out), free(middle);
}

/* A server of ours, and clients of the kernel's: listeners, resets, closing by libc, interruptions. */
static void serve(fp_stack *stack) {
    struct sockaddr_in at = address(OURS, 8), from;
    socklen_t len = sizeof from;
    int listener = fp_socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fp_bind(listener, &at, sizeof at) == 0 && fp_listen(listener, 5) == 0);
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(peer, (void *)&at, sizeof at) == 0);
    CHECK(polled(listener, POLLIN, 2000) == POLLIN);
    int fd = fp_accept(listener, &from, &len);
    CHECK(fd >= 0 && len == sizeof from && from.sin_family == AF_INET && polled(listener, POLLIN, 0) == 0);
    char byte;
    /* A time limit, a signal, and another thread end a wait. */
    struct timeval limit = {0, 30000};
    CHECK(fp_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    FAILS(fp_read(fd, &byte, 1), EAGAIN);
    limit.tv_usec = 0;
    CHECK(fp_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    ualarm(30000, 0);
    FAILS(fp_read(fd, &byte, 1), EINTR);
    pthread_t thread;
    for (int again = 0; again < 2; again++) {
        pthread_create(&thread, NULL, interrupt_later, stack);
        FAILS(fp_read(fd, &byte, 1), EINTR);
        pthread_join(thread, NULL);
    }
    /* A reset. */
    struct linger now = {1, 0};
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(peer);
    CHECK(shows(fd, POLLIN | POLLERR | POLLHUP | POLLRDHUP));
    FAILS(fp_read(fd, &byte, 1), ECONNRESET);
    CHECK(fp_read(fd, &byte, 1) == 0);
    FAILS(fp_write(fd, &byte, 1), EPIPE);
    close(fd);
    /* close(2) of the system closes the connection. */
    peer = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(peer, (void *)&at, sizeof at) == 0);
    fd = fp_accept(listener, NULL, NULL);
    CHECK(fp_write(fd, "bye", 3) == 3 && close(fd) == 0);
    char word[9];
    CHECK(read(peer, word, 9) == 3 && read(peer, word, 9) == 0);
    FAILS(fp_read(fd, &byte, 1), EBADF);
    close(peer);
    pthread_create(&thread, NULL, close_later, &listener);
    FAILS(fp_accept(listener, NULL, NULL), EBADF);
    pthread_join(thread, NULL);
}

static void datagrams(void) {
    struct sockaddr_in at = address(OURS, 53), from;
    socklen_t len = sizeof from;
    int fd = fp_socket(AF_INET, SOCK_DGRAM, 0), peer = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(fp_bind(fd, &at, sizeof at) == 0);
    CHECK(sendto(peer, "question", 8, 0, (void *)&at, sizeof at) == 8);
    char word[20];
    CHECK(polled(fd, POLLIN, 2000) == POLLIN);
    CHECK(fp_recvfrom(fd, word, sizeof word, 0, &from, &len) == 8 && memcmp(word, "question", 8) == 0);
    CHECK(polled(fd, POLLIN | POLLOUT, 0) == POLLOUT);
    FAILS(fp_write(fd, "x", 1), EDESTADDRREQ);
    CHECK(fp_sendto(fd, "answer", 6, 0, &from, len) == 6 && read(peer, word, 20) == 6);
    FAILS(fp_recv(fd, word, 1, MSG_DONTWAIT), EAGAIN);
    FAILS(fp_listen(fd, 1), EOPNOTSUPP);
    close(fd), close(peer);
}

/* Copies of a descriptor, and a child that has it as well: the connection ends with the last of them. */
static void copies(fp_stack *stack, int listener, const struct sockaddr_in *at) {
    char byte;
    int peer = socket(AF_INET, SOCK_STREAM, 0), status;
    CHECK(connect(peer, (const void *)at, sizeof *at) == 0);
    int fd = fp_accept(listener, NULL, NULL), copy = fp_dup(fd);
    CHECK(fd >= 0 && copy >= 0 && fp_dup2(copy, copy) == copy && fp_fcntl(fd, F_DUPFD_CLOEXEC, 50) == 50);
    FAILS(fp_dup3(fd, fd, 0), EINVAL);
    FAILS(fp_dup3(fd, 51, O_APPEND), EINVAL);
    CHECK(fp_dup3(fd, 51, O_CLOEXEC) == 51 && fp_fcntl(51, F_GETFD, 0) == FD_CLOEXEC);
    CHECK(fp_close(fd) == 0 && fp_close(50) == 0 && fp_close(51) == 0);
    FAILS(fp_write(fd, "x", 1), EBADF);
    CHECK(fp_write(copy, "x", 1) == 1 && read(peer, &byte, 1) == 1 && byte == 'x');
    pid_t child = fork();
    if (child == 0) {
        CHECK(write(peer, "to the child", 12) == 12);
        char text[20];
        struct pollfd one = {.fd = copy, .events = POLLIN};
        CHECK(fp_poll(&one, 1, 2000) == 1 && fp_recv(copy, text, 12, MSG_WAITALL) == 12 && memcmp(text, "to the", 6) == 0);
        CHECK((polled(copy, POLLIN, 0) & POLLIN) == 0);
        FAILS(fp_recv(copy, text, 1, MSG_DONTWAIT), EAGAIN);
        FAILS(fp_stack_stop(stack), EPERM);
        FAILS(fp_stack_wait(stack, 0), EPERM);
        FAILS(fp_socket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
        FAILS(fp_socket_inherited(0), EBADF);
        int other = fp_stack_socket(stack, AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one_ = 1, value = 0;
        socklen_t len = sizeof value;
        CHECK(other >= 0 && fp_fcntl(other, F_GETFD, 0) == FD_CLOEXEC && (fp_fcntl(other, F_GETFL, 0) & O_NONBLOCK));
        CHECK(fp_setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &one_, 4) == 0);
        CHECK(fp_getsockopt(other, IPPROTO_TCP, TCP_NODELAY, &value, &len) == 0 && value == 1 && len == 4);
        FAILS(fp_setsockopt(other, SOL_SOCKET, 9999, &one_, 4), ENOPROTOOPT);
        struct sockaddr_in nobody = address("10.78.0.1", 9);
        FAILS(fp_connect(other, &nobody, sizeof nobody), EINPROGRESS);
        polled(other, POLLOUT, 2000);
        CHECK(fp_getsockopt(other, SOL_SOCKET, SO_ERROR, &value, &len) == 0 && value == ECONNREFUSED);
        CHECK(fp_close(other) == 0 && fp_write(copy, "y", 1) == 1);
        _exit(0);
    }
    CHECK(fp_close(copy) == 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(read(peer, &byte, 1) == 1 && byte == 'y' && read(peer, &byte, 1) == 0);
    close(peer);
}

/* A stack in words, of both families; a number that was the kernel's; and an end in good order. */
static void words(void) {
    char why[200];
    CHECK(fp_stack_open("tun=fp1\nadress=10.78.0.2/24") == NULL && errno == EINVAL);
    CHECK(fp_stack_reason(why, sizeof why) > 0 && strstr(why, "adress=10.78.0.2/24") != NULL);
    CHECK(fp_stack_reason(why, 4) > 4 && strlen(why) == 3);
    fp_stack *stack = fp_stack_open("tun=fp1\nkernel=10.78.0.1/24\nkernel=fd78::1/64\n"
                                    "address=10.78.0.2/24\naddress=fd78::2/64\n");
    CHECK(stack != NULL);
    int listener = socket(AF_INET6, SOCK_STREAM, 0);
    CHECK(fp_socket_at(listener, AF_INET6, SOCK_STREAM, 0) == listener);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(7)}, from;
    socklen_t len = sizeof from;
    CHECK(fp_bind(listener, &any, sizeof any) == 0 && fp_listen(listener, 3) == 0);
    struct sockaddr_in at = address("10.78.0.2", 7);
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(peer, (void *)&at, sizeof at) == 0);
    int fd = fp_accept(listener, &from, &len);
    CHECK(fd >= 0 && len == sizeof from && IN6_IS_ADDR_V4MAPPED(&from.sin6_addr) && from.sin6_addr.s6_addr[15] == 1);
    static char some[50000], got[50001];
    memset(some, 'x', sizeof some);
    CHECK(fp_write(fd, some, sizeof some) == sizeof some);
    copies(stack, listener, &at);
    CHECK(fp_stack_finish(stack, 5000) == 0);
    CHECK(recv(peer, got, sizeof got, MSG_WAITALL) == sizeof some && memcmp(some, got, sizeof some) == 0);
    FAILS(fp_write(fd, some, 1), EBADF);
    close(fd), close(peer), close(listener);
}

int main(void) {
    alarm(60);
    FAILS(fp_socket(AF_INET, SOCK_STREAM, 0), ENETDOWN);
    CHECK(fp_stack_tun("fp0", "nonsense", OURS, NULL) == NULL && errno == EINVAL);
    CHECK(fp_stack_tun("fp0", KERNEL "/24", OURS, "nonesuch") == NULL && errno == ENOENT);
    fp_stack *stack = fp_stack_tun("fp0", KERNEL "/24", OURS, NULL);
    CHECK(stack != NULL);
    nobody_is_there(), what_is_wrong(), options(), echo(), serve(stack), datagrams();
    int fd = fp_stack_socket(stack, AF_INET, SOCK_STREAM, 0);
    CHECK(fp_stack_stop(stack) == 0);
    struct sockaddr_in at = address(KERNEL, 7);
    FAILS(fp_connect(fd, &at, sizeof at), ENETDOWN);
    words();
    puts("well");
    return 0;
}
